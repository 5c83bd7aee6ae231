"""How often a log is looked at."""

from __future__ import annotations

import asyncio

import pytest

from duetime.stores.sql.sqlite import commit_watch as watch


async def rounds(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


class Looker:
    """Looks whenever the pace says so, and counts; the look of this number finds something."""

    def __init__(self, pace: watch.EventTiming | watch.PollTiming, *, finds: int | None = None) -> None:
        self.looks = 0
        self._pace = pace
        self._finds = finds
        self.task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while True:
            await self._pace.next_look(changed=self.looks == self._finds)
            self.looks += 1


@pytest.mark.parametrize(("seen_by", "most"), [(None, 10), (1, 5)])
async def test_nothing_is_looked_at_while_nothing_is_written_and_little_once_it_is_seen(
    monkeypatch: pytest.MonkeyPatch, seen_by: int | None, most: int
) -> None:
    monkeypatch.setattr(watch, "_LOOKS", (0.0,) * 10)
    pace = watch.EventTiming()
    looker = Looker(pace, finds=seen_by)
    await rounds(100)
    assert looker.looks == 0
    pace.notice()
    await rounds(100)
    assert looker.looks == most
    looker.task.cancel()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The lengths of all sleeps from here on, none of which takes any time."""
    lengths: list[float] = []

    async def sleep(length: float) -> None:
        lengths.append(length)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return lengths


async def test_events_that_keep_coming_are_looked_at_immediately_first_and_then_at_a_distance(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    monkeypatch.setattr(watch, "_QUIET_AFTER", 3600.0)
    pace = watch.EventTiming()
    for _ in range(100):
        pace.notice()
        await pace.next_look(changed=True)
    assert pauses[0] == 0
    assert set(pauses[10:]) == {0.002}


async def test_an_event_after_a_lull_is_looked_at_immediately(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    monkeypatch.setattr(watch, "_QUIET_AFTER", 0.0)
    pace = watch.EventTiming()
    for _ in range(100):
        pace.notice()
        await pace.next_look(changed=False)
    assert set(pauses) == {0.0}


async def test_an_event_of_our_own_commit_is_looked_at_three_times_the_first_after_a_while() -> None:
    pace = watch.EventTiming(lambda _: True)
    looker = Looker(pace)
    pace.notice()
    await asyncio.wait({looker.task}, timeout=0.01)
    assert looker.looks == 0
    await asyncio.wait({looker.task}, timeout=1)
    assert looker.looks == 3
    await asyncio.wait({looker.task}, timeout=0.05)
    looker.task.cancel()
    assert looker.looks == 3


async def test_a_row_of_our_own_commits_is_looked_at_again_and_again_but_not_often() -> None:
    pace = watch.EventTiming(lambda _: True)
    looker = Looker(pace)
    began = asyncio.get_running_loop().time()
    while (passed := asyncio.get_running_loop().time() - began) < 0.3:
        pace.notice()
        await asyncio.sleep(0.001)
    looker.task.cancel()
    assert 1 <= looker.looks <= passed / 0.02


async def test_an_event_of_others_among_those_of_this_process_is_looked_at_immediately(
    pauses: list[float],
) -> None:
    writing = True
    pace = watch.EventTiming(lambda _: writing)
    for _ in range(3):
        pace.notice()
        await pace.next_look(changed=False)
    assert pauses == []
    writing = False
    pace.notice()
    await pace.next_look(changed=False)
    writing = True
    for _ in range(4):
        pace.notice()
        await pace.next_look(changed=False)
    assert pauses == [0.0, 0.0, 0.001, 0.001, 0.002]


async def test_an_event_of_this_process_does_not_slow_down_the_looks_for_those_of_others(
    pauses: list[float],
) -> None:
    writing = False
    pace = watch.EventTiming(lambda _: writing)
    pace.notice()
    await pace.next_look(changed=False)
    writing = True
    pace.notice()
    for _ in range(4):
        await pace.next_look(changed=False)
    assert pauses == [0.0, 0.0, 0.001, 0.001, 0.002]


async def test_a_poll_that_finds_nothing_becomes_rarer_and_one_that_does_begins_anew(
    pauses: list[float],
) -> None:
    pace = watch.PollTiming()
    for _ in range(100):
        await pace.next_look(changed=False)
    assert pauses[-1] > 10 * pauses[0]
    await pace.next_look(changed=True)
    assert pauses[-1] < 2 * pauses[0]
