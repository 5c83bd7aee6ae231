from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.stores.redis.rows import with_readable_text

NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
PLAIN = st.none() | st.booleans() | NUMBERS | st.text()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(VALUES)
def test_what_is_well_is_left_as_it_is(value: Any) -> None:
    assert msgspec.msgpack.decode(with_readable_text(msgspec.msgpack.encode(value))) == value


@pytest.mark.parametrize("length", [3, 200, 70_000])
def test_long_texts_lists_and_maps_are_read_as_well(length: int) -> None:
    value = ["x" * length, [1] * length, {str(number): number for number in range(length)}]
    assert msgspec.msgpack.decode(with_readable_text(msgspec.msgpack.encode(value))) == value


def test_text_that_is_no_text_is_replaced_and_its_neighbours_stay() -> None:
    packed = b"\x93\xa2\xff\xfe\xa1a\x01"
    assert msgspec.msgpack.decode(with_readable_text(packed)) == ["\N{REPLACEMENT CHARACTER}" * 2, "a", 1]


def test_what_redis_never_writes_is_refused() -> None:
    with pytest.raises(ValueError, match="0xc1"):
        with_readable_text(b"\xc1")
