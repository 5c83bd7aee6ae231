from __future__ import annotations

import asyncio

from duetime.stores.base import Hint
from duetime.stores.redis.hints import RedisHintSender
from tests.support.pace import one_moment

JOBS = Hint("jobs")


class SentHints:
    """The hints that did not go with calls."""

    def __init__(self) -> None:
        self.hints: list[Hint] = []
        self.sender = RedisHintSender(self.publish)

    async def publish(self, hint: Hint) -> None:
        self.hints.append(hint)

    def call(self, *hints: Hint) -> list[Hint]:
        """Make a call with hints, and return those that went with it."""
        sent = self.sender.with_call(hints)
        self.sender.hold_back(hint for hint in hints if hint not in sent)
        return sent


async def test_the_first_of_many_goes_with_its_call_and_one_more_follows_for_all_others() -> None:
    sent = SentHints()
    with one_moment():
        assert [sent.call(JOBS) for _ in range(50)] == [[JOBS]] + [[]] * 49
    assert sent.hints == []
    await sent.sender.close()
    assert sent.hints == [JOBS]


async def test_one_that_comes_alone_goes_with_its_call_and_nothing_follows() -> None:
    sent = SentHints()
    assert sent.call(JOBS) == [JOBS]
    await asyncio.sleep(0.01)
    assert sent.call(JOBS) == [JOBS]
    await sent.sender.close()
    assert sent.hints == []


async def test_one_that_was_held_back_goes_with_the_next_call_that_may_carry_it() -> None:
    sent = SentHints()
    with one_moment():
        assert [sent.call(JOBS) for _ in range(2)] == [[JOBS], []]
    while not sent.call(JOBS):
        pass
    await sent.sender.close()
    assert sent.hints == []


async def test_one_that_was_held_back_meanwhile_is_not_covered_by_a_call_that_was_sent_before() -> None:
    sent = SentHints()
    with one_moment():
        sent.sender.with_call([JOBS])
        assert sent.call(JOBS) == [], "answered before the call that is under way"
    await sent.sender.close()
    assert sent.hints == [JOBS]


async def test_different_ones_do_not_wait_for_each_other() -> None:
    sent = SentHints()
    other = Hint("limits")
    with one_moment():
        assert sent.call(JOBS) == [JOBS]
        assert sent.call(JOBS, other) == [other]
        assert sent.call(JOBS, other) == []
    await sent.sender.close()
    assert set(sent.hints) == {JOBS, other}


async def test_a_hint_that_cannot_be_given_fails_no_caller() -> None:
    tried: list[Hint] = []

    async def publish(hint: Hint) -> None:
        tried.append(hint)
        raise OSError(hint)

    sender = RedisHintSender(publish)
    for _ in range(2):
        sender.with_call([JOBS])
        sender.hold_back([JOBS])
        await sender.close()
    assert tried == [JOBS, JOBS]


async def test_nothing_is_being_sent_any_more_when_it_has_ended() -> None:
    began, ended = asyncio.Event(), False

    async def publish(_hint: Hint) -> None:
        nonlocal ended
        began.set()
        await asyncio.sleep(0.01)
        ended = True

    sender = RedisHintSender(publish)
    sender.with_call([JOBS])
    sender.hold_back([JOBS])
    await began.wait()
    await sender.close()
    assert ended


async def test_hints_of_many_locks_do_not_pile_up() -> None:
    sent = SentHints()
    for number in range(1_000):
        hint = Hint("lock", str(number))
        with one_moment():
            assert [sent.call(hint) for _ in range(2)] == [[hint], []]
        if not number % 100:
            await asyncio.sleep(0.01)
    await sent.sender.close()
    sent.call(JOBS)
    assert len(sent.hints) == 1_000
    assert max(len(sent.sender._next_at), len(sent.sender._tasks)) < 1_000
