from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import ConfigError, InvalidName, InvalidOption
from duetime.model.text import MAX_NAME, check_name, check_namespace, check_reason


@pytest.mark.parametrize(
    "name", ["a", "0", "_x", "mail.send", "app:jobs/x@y-1", "pkg.f.<locals>.g", "n" * MAX_NAME]
)
def test_common_names_are_accepted(name: str) -> None:
    assert check_name(name, what="task name") == name


@pytest.mark.parametrize(
    "name", ["", " ", ".x", "-x", "a b", "a\n", "näh", "a\x00", "a'b", 'a"b', "a;b", "a%b"]
)
def test_odd_names_are_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidName, match=r"^queue name .* is not allowed: use letters"):
        check_name(name, what="queue name")


def test_a_name_that_is_too_long_is_refused_without_repeating_it() -> None:
    with pytest.raises(InvalidName, match="has 100000 characters; at most 200") as caught:
        check_name("n" * 100_000, what="task name")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", [None, 1, b"x", ["x"]])
def test_a_name_that_is_not_text_is_refused(name: Any) -> None:
    with pytest.raises(InvalidName, match="task name must be text, not"):
        check_name(name, what="task name")


@pytest.mark.parametrize("namespace", ["duetime", "a", "_x9", "n" * 31])
def test_plain_namespaces_are_accepted(namespace: str) -> None:
    assert check_namespace(namespace) == namespace


@pytest.mark.parametrize(
    "namespace", ["", "A", "1a", "a-b", "a.b", "a b", "x; drop table", "é", "a\n", "n" * 32, None, 3]
)
def test_what_cannot_be_part_of_a_table_name_is_refused_with_an_example(namespace: Any) -> None:
    with pytest.raises(ConfigError, match="namespace='billing'"):
        check_namespace(namespace)


def test_a_huge_namespace_is_not_repeated_in_full() -> None:
    with pytest.raises(ConfigError) as caught:
        check_namespace("n" * 100_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("reason", ["a\0b", "\udfff"])
def test_a_reason_that_databases_would_alter_is_refused(reason: str) -> None:
    with pytest.raises(InvalidOption, match="NUL or half a pair of surrogates"):
        check_reason(reason)


def test_a_reason_is_text_of_bounded_length() -> None:
    assert check_reason("x" * 1_000) == "x" * 1_000
    with pytest.raises(InvalidOption, match="has 1,001 characters; at most 1,000 are allowed"):
        check_reason("x" * 1_001)
