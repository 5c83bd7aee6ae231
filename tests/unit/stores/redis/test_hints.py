from __future__ import annotations

import asyncio

from duetime.stores.base import Hint
from duetime.stores.redis.hints import RedisHintSender
from tests.support.pace import one_moment

JOBS = Hint("jobs")


class Said:
    """What was said behind calls."""

    def __init__(self) -> None:
        self.hints: list[Hint] = []
        self.voice = RedisHintSender(self.publish)

    async def publish(self, hint: Hint) -> None:
        self.hints.append(hint)

    def call(self, *hints: Hint) -> list[Hint]:
        """Make a call with hints, and return those that went with it."""
        said = self.voice.with_call(hints)
        self.voice.after_call(hints, said=said)
        return list(said)


async def test_the_first_of_many_goes_with_its_call_and_one_more_follows_for_all_others() -> None:
    said = Said()
    with one_moment():
        assert [said.call(JOBS) for _ in range(50)] == [[JOBS]] + [[]] * 49
    assert said.hints == []
    await said.voice.close()
    assert said.hints == [JOBS]


async def test_one_that_comes_alone_goes_with_its_call_and_nothing_follows() -> None:
    said = Said()
    assert said.call(JOBS) == [JOBS]
    await asyncio.sleep(0.01)
    assert said.call(JOBS) == [JOBS]
    await said.voice.close()
    assert said.hints == []


async def test_one_that_was_held_back_goes_with_the_next_call_that_may_say_it() -> None:
    said = Said()
    with one_moment():
        assert [said.call(JOBS) for _ in range(2)] == [[JOBS], []]
    while not said.call(JOBS):
        pass
    await said.voice.close()
    assert said.hints == []


async def test_one_that_was_held_back_meanwhile_is_not_covered_by_a_call_that_was_sent_before() -> None:
    said = Said()
    with one_moment():
        slow = said.voice.with_call([JOBS])
        assert said.call(JOBS) == []
    said.voice.after_call([JOBS], said=slow)
    await said.voice.close()
    assert said.hints == [JOBS]


async def test_different_ones_do_not_wait_for_each_other_and_those_with_a_name_for_none() -> None:
    said = Said()
    one, other = Hint("worker", "w1"), Hint("limits")
    with one_moment():
        assert said.call(JOBS, one, other) == [JOBS, one, other]
        assert said.call(one) == [one]
        assert said.call(JOBS, other) == []
    await said.voice.close()
    assert set(said.hints) == {JOBS, other}


async def test_a_hint_that_cannot_be_given_fails_nobody() -> None:
    tried: list[Hint] = []

    async def publish(hint: Hint) -> None:
        tried.append(hint)
        raise OSError(hint)

    voice = RedisHintSender(publish)
    for _ in range(2):
        voice.with_call([JOBS])
        voice.after_call([JOBS], said={})
        await voice.close()
    assert tried == [JOBS, JOBS]


async def test_nothing_is_being_said_any_more_when_it_has_ended() -> None:
    began, ended = asyncio.Event(), False

    async def publish(_hint: Hint) -> None:
        nonlocal ended
        began.set()
        await asyncio.sleep(0.01)
        ended = True

    voice = RedisHintSender(publish)
    voice.with_call([JOBS])
    voice.after_call([JOBS], said={})
    await began.wait()
    await voice.close()
    assert ended
