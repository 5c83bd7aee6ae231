"""What is taken in advance of a backlog."""

from __future__ import annotations

import asyncio

import pytest

from duetime.model.job import Claim
from duetime.model.time import MILLISECOND, SECOND
from duetime.runtime.running.slots import Slots
from duetime.stores.base import ClaimRequest, NextDue
from tests.unit.runtime.claiming.fetching import HANDLER, Busy, OneJob, Stuck, idle_fetcher
from tests.unit.runtime.kit import claim


class Backlog(OneJob):
    """A store that has one batch, and then nothing."""

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        first = "claim" not in self._story
        await super().claim(demand)
        return [claim(str(n)) for n in range(demand.limit)] if first else []


async def test_the_next_batch_of_a_backlog_is_asked_for_before_the_one_that_was_claimed_runs() -> None:
    story: list[str] = []
    busy = Busy(story)
    busy.speed.duration = 1
    await idle_fetcher(store=Backlog(story), dispatcher=busy, handlers={"task": HANDLER}).round()
    await asyncio.sleep(0)
    assert story == ["claim", "claim", "0 runs", "1 runs"]


class Endless(OneJob):
    """A store that has as many due jobs as anybody asks for."""

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        await super().claim(demand)
        return [claim(f"{len(self._story)} {n}") for n in range(demand.limit)]

    async def next_due(self, queues: object, tasks: object) -> NextDue:
        return (await super().next_due(queues, tasks))._replace(due_at=0)


@pytest.mark.parametrize(("gap", "wanted"), [(1, 1_200), (MILLISECOND, 49), (10 * MILLISECOND, 4)])
async def test_as_many_are_taken_in_advance_as_end_in_a_moment_however_many_slots_there_are(
    gap: int, wanted: int
) -> None:
    slots = Slots(200, {})
    stuck = Stuck(slots)
    stuck.speed.gap = gap
    fetcher = idle_fetcher(store=Endless([]), dispatcher=stuck, handlers={"task": HANDLER}, slots=slots)
    await fetcher.round()
    assert len(fetcher.hold.waiting) == wanted


async def test_what_was_taken_in_advance_and_found_no_slot_is_left_to_others() -> None:
    slots = Slots(2, {})
    story: list[str] = []
    stuck = Stuck(slots)
    fetcher = idle_fetcher(
        store=Endless(story), dispatcher=stuck, handlers={"task": HANDLER}, slots=slots, window=1
    )
    await fetcher.round()
    waiting = len(fetcher.hold.waiting)
    assert waiting > 0
    await asyncio.wait_for(stuck.has_given_back.wait(), 10)
    assert len(stuck.given_back) == waiting
    await fetcher.round()
    assert story == ["claim", "claim", "next due"], "others were not let have what had gone back"


@pytest.mark.parametrize(("pace", "looks"), [(1, False), (SECOND, True)])
async def test_while_short_runs_of_a_backlog_take_all_slots_nobody_looks_further(
    pace: int, looks: bool
) -> None:
    slots = Slots(2, {})
    story: list[str] = []
    stuck = Stuck(slots)
    fetcher = idle_fetcher(store=Endless(story), dispatcher=stuck, handlers={"task": HANDLER}, slots=slots)
    fetcher.hold._budget = lambda: 4_000
    await fetcher.round()
    stuck.speed.duration = pace
    await fetcher.round()
    assert ("next due" in story) is looks
