from __future__ import annotations

import msgspec
import pytest

from duetime.stores.redis.messages import read_answer

GOOD = "\N{SNOWMAN}" * 100


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xff" * 200, b"\xff" * 70_000])
def test_text_that_is_no_text_is_replaced_and_its_neighbours_stay(text: bytes) -> None:
    stand_in = "x" * len(text)
    answer = {"now": 2**60, "said": stand_in}, [[1, stand_in, GOOD], {"why": stand_in, "at": 2.5}, [None, -3]]
    packed = msgspec.msgpack.encode(answer).replace(stand_in.encode(), text)

    facts, rows = read_answer(packed)

    replaced = "\N{REPLACEMENT CHARACTER}" * len(text)
    assert facts == {"now": 2**60, "said": replaced}
    assert rows == [
        [1, replaced, GOOD],
        {"why": replaced, "at": 2.5},
        [None, -3],
    ]
