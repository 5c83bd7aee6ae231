"""How deep a JSON text is, told without reading it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from duetime.model.text import MAX_DEPTH, MAX_DIGITS, beyond_bounds, is_deeper

_TEXTS = st.text(alphabet='[]{}"\\a\n')
_VALUES = st.recursive(
    st.none() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
)


def depth(value: object) -> int:
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    if not isinstance(value, list):
        return 0
    inner: list[Any] = value
    return 1 + max(map(depth, inner), default=0)


@given(_VALUES)
def test_it_is_as_deep_as_the_value_whatever_its_texts_say(value: object) -> None:
    deep = depth(value)
    raw = json.dumps(value).encode()
    assert not is_deeper(raw, deep)
    assert deep == 0 or is_deeper(raw, deep - 1)


@pytest.mark.parametrize("ends", [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
@pytest.mark.parametrize(("deep", "told"), [(MAX_DEPTH, False), (MAX_DEPTH + 1, True), (100_000, True)])
def test_a_value_that_is_too_deep_is_told(ends: tuple[bytes, bytes], deep: int, told: bool) -> None:
    found = beyond_bounds(ends[0] * deep + b"1" + ends[1] * deep)
    assert (found == "it is nested more than 100 deep") is told


def test_many_small_values_side_by_side_are_not_deep() -> None:
    assert beyond_bounds(json.dumps([{"a": [1]}] * 5_000).encode()) is None


@pytest.fixture
def no_limit() -> Iterator[None]:
    """A process that writes whole numbers of any length."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(before)


@pytest.mark.usefixtures("no_limit")
def test_a_number_that_other_processes_cannot_read_is_told_but_no_text_of_digits() -> None:
    digits = b"7" * (MAX_DIGITS + 1)
    assert beyond_bounds(b"[0," + digits + b"]") == "it has a whole number of more than 4,300 digits"
    assert beyond_bounds(digits[1:]) is None
    assert beyond_bounds(b'"' + digits + b'"') is None
