from __future__ import annotations

from duetime.model.text import shown


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError


def test_a_value_is_shown_as_written() -> None:
    assert shown("a") == "'a'"


def test_a_long_value_is_cut() -> None:
    assert len(shown("a" * 1_000)) < 100


def test_a_value_that_cannot_be_printed_is_named_by_its_type() -> None:
    assert shown(Broken()) == "something of type Broken"
    assert shown(10**5_000) == "something of type int"
