"""Runs that fail, and what that does to their schedule: nothing, unless it is to be paused."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from duetime import Scheduler
from duetime.model.schedule.record import StoredSchedule
from duetime.model.states import State
from duetime.model.time import Instant
from duetime.model.triggers.every import Every
from duetime.runtime.running.run import current_run
from tests.integration.kit import until
from tests.integration.occurrences import NAME, PACE, accounted, put, records

ENOUGH = 8


def failing(url: str, tries: list[Instant]) -> Scheduler:
    """A scheduler with a task that fails each time."""
    scheduler = Scheduler(url)

    @scheduler.task(name="failing")
    async def fail() -> None:
        tries.append(current_run.get().claim.occurrence or 0)
        raise LookupError("nothing here")

    return scheduler


@pytest.mark.covers("failure-stops-schedule", "occurrence-twice")
async def test_each_occurrence_is_tried_once_by_one_of_many_workers_though_all_fail(store_url: str) -> None:
    tries: list[Instant] = []
    schedulers = [failing(store_url, tries) for _ in range(3)]
    async with AsyncExitStack() as stack:
        for scheduler in schedulers:
            await stack.enter_async_context(scheduler.worker())
        store = schedulers[0].store
        trigger = Every(interval=PACE, start=await store.now() + PACE)
        await put(schedulers[0], NAME, "failing", trigger, overlap="allow")

        async def failed() -> bool:
            return sum(record.state is State.FAILED for record in await records(store)) >= ENOUGH

        await until(failed, what=f"{ENOUGH} failures")
        await schedulers[0].schedules.pause(NAME)
        found = await records(store)
        ended = [record for record in found if record.state is State.FAILED]
        assert {record.failures for record in ended} == {1}
        assert [await store.attempts(record.id) for record in ended] == [[]] * len(ended)
    assert accounted(found)
    assert len(tries) == len(set(tries)), "an occurrence was tried twice"
    assert {record.occurrence for record in ended} <= set(tries)


async def test_failures_in_a_row_pause_the_schedule_and_say_so(store_url: str) -> None:
    tries: list[Instant] = []
    scheduler = failing(store_url, tries)
    async with scheduler, scheduler.worker():
        store = scheduler.store
        trigger = Every(interval=PACE, start=await store.now() + PACE)
        await put(scheduler, NAME, "failing", trigger, pause_after=3)

        async def paused() -> StoredSchedule | None:
            (schedule,) = await store.get_schedules([NAME])
            return schedule if schedule.paused_at is not None else None

        schedule = await until(paused, what="the pause")
        (entry,) = [e for e in await store.entries(NAME, limit=10) if e.verb == "pause"]
        first = len(tries)
        await scheduler.schedules.resume(NAME)
        await until(paused, what="the next pause")
    assert schedule is not None
    assert (schedule.paused_reason, schedule.paused_by) == ("3 failures in a row", "duetime")
    assert (entry.who, entry.detail) == ("duetime", {"reason": "3 failures in a row"})
    assert schedule.fired_through >= tries[first - 1]
    assert (first, len(tries)) == (3, 6), "the count begins anew"
