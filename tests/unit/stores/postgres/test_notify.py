from __future__ import annotations

import pytest

from duetime.stores.base import Hint
from duetime.stores.sql.postgres.notify import decode, encode


def test_hints_are_read_back_as_they_were_written() -> None:
    hints = [Hint("jobs"), Hint("worker", "w'1\\ \"ü"), Hint("schedules")]
    assert decode(encode("me", hints), own="you") == hints


def test_our_own_hints_are_left_out() -> None:
    assert decode(encode("me", [Hint("jobs")]), own="me") == []


def test_hints_too_many_for_one_notification_become_any() -> None:
    text = encode("me", [Hint("worker", "ü" * 100) for _ in range(50)])
    assert len(text.encode()) < 8000
    assert decode(text, own="you") == [Hint("any")]


@pytest.mark.parametrize("text", ["", "hello", "[]", '["me", [["sideways", ""]]]', '{"a": 1}'])
def test_what_other_software_sends_counts_as_any(text: str) -> None:
    assert decode(text, own="me") == [Hint("any")]
