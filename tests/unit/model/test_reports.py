from __future__ import annotations

import math
from decimal import Decimal

import pytest

from duetime.errors import InvalidOption
from duetime.model.reports import MAX_NOTE, LogPart, check_fraction, check_note, with_gaps


@pytest.mark.parametrize("value", [0, 0.0, 0.4, 1, 1.0])
def test_a_fraction_is_a_number_from_0_to_1(value: float) -> None:
    assert check_fraction(value) == value


def test_a_fraction_keeps_as_many_digits_as_every_database_does() -> None:
    assert check_fraction(1 / 3) == 0.333333


@pytest.mark.parametrize(
    "value",
    [-0.1, 1.1, 40, math.nan, math.inf, 10**400, True, "0.4", None, Decimal("0.4"), object()],
)
def test_anything_else_is_refused_and_shown(value: object) -> None:
    with pytest.raises(InvalidOption, match=r"^progress must be a number from 0 to 1, such as 0\.4, not "):
        check_fraction(value)


def test_a_long_note_is_cut() -> None:
    assert check_note("a" * MAX_NOTE) == "a" * MAX_NOTE
    assert check_note("a" * (MAX_NOTE + 1)) == "a" * (MAX_NOTE - 1) + "…"


def test_a_note_with_what_is_no_unicode_shows_it() -> None:
    assert check_note("caf\udce9") == "caf\\udce9"
    assert len(check_note("\udce9" * MAX_NOTE)) == MAX_NOTE


def test_a_note_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidOption, match="must be text, not 3"):
        check_note(3)


def part(fence: int, line: int, text: str) -> LogPart:
    return LogPart(job_id="job", fence=fence, attempt=fence, line=line, text=text)


def test_a_log_without_gaps_has_none() -> None:
    parts = [part(1, 1, "one\ntwo"), part(1, 3, "three"), part(2, 1, "again")]
    assert with_gaps(parts) == parts


def test_missing_lines_are_counted_before_the_part_that_follows_them() -> None:
    parts = [part(1, 1, "one\ntwo"), part(1, 10, "ten"), part(2, 3, "three")]
    assert [part.dropped for part in with_gaps(parts)] == [0, 7, 2]
