"""What a schedule has stored ahead of its time is within reach of whoever pauses, skips or deletes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from duetime import Scheduler, cron, every
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import from_datetime
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.stores.base import JobFilter
from duetime.testing.clock import FakeClock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON - timedelta(seconds=1))


@pytest.fixture
async def scheduler(store_url: str, clock: FakeClock) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(store_url, clock=clock, shortest_interval="10ms")

    @scheduler.task(name="work")
    async def work() -> None: ...

    async with scheduler:
        yield scheduler


async def found(scheduler: Scheduler) -> list[StoredJob]:
    return await scheduler.store.occurrences("s", since=0, until=2**62, limit=99)


async def put_drawn(scheduler: Scheduler, clock: FakeClock) -> StoredJob:
    """Store a schedule of every hour with a jitter, and return its job, that waits for the time that was drawn."""
    await scheduler.schedules.put("s", cron("0 * * * *").jitter("50m"), "work")
    await ScheduleFirer(scheduler.store, ServiceHealth()).round()
    clock.advance("2s")
    (job,) = await found(scheduler)
    assert (job.occurrence, job.due_at > clock.now()) == (from_datetime(NOON, what="noon"), True)
    return job


@pytest.mark.parametrize("verb", ["pause", "delete", "new trigger"])
async def test_a_job_that_waits_for_its_drawn_time_does_not_run_any_more(
    scheduler: Scheduler, clock: FakeClock, verb: str
) -> None:
    job = await put_drawn(scheduler, clock)
    match verb:
        case "pause":
            await scheduler.schedules.pause("s")
        case "delete":
            await scheduler.schedules.delete("s")
        case _:
            await scheduler.schedules.edit("s", trigger=cron("30 5 * * *"))
    assert [(one.id, one.state, one.occurrence) for one in await found(scheduler)] == [
        (job.id, State.CANCELLED, job.occurrence)
    ]


async def test_an_edit_of_anything_else_leaves_it_as_it_was_made(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    job = await put_drawn(scheduler, clock)
    await scheduler.schedules.edit("s", priority=1)
    assert [(one.id, one.state) for one in await found(scheduler)] == [(job.id, State.PENDING)]


async def test_it_is_the_next_to_be_skipped(scheduler: Scheduler, clock: FakeClock) -> None:
    job = await put_drawn(scheduler, clock)
    assert await scheduler.schedules.skip("s", by="alice") == NOON
    (record,) = await found(scheduler)
    assert (record.state, record.occurrence) == (State.SKIPPED, job.occurrence)
    assert (await scheduler.schedules.get("s")).next_at == NOON + timedelta(hours=1)


async def test_of_several_that_are_planted_the_first_is_skipped_and_the_others_run(
    scheduler: Scheduler,
) -> None:
    await scheduler.schedules.put("s", every("300ms"), "work", overlap="allow")
    firer = ScheduleFirer(scheduler.store, ServiceHealth())
    for _ in range(4):
        await firer.round()
    planted = await found(scheduler)
    assert [job.state for job in planted] == [State.PENDING] * 3
    place = (await scheduler.schedules.get("s")).next_at
    for number in (0, 1):
        skipped = await scheduler.schedules.skip("s")
        assert from_datetime(skipped, what="skipped") == planted[number].occurrence
    after = await found(scheduler)
    assert [job.state for job in after] == [State.SKIPPED, State.SKIPPED, State.PENDING]
    assert [job.occurrence for job in after] == [job.occurrence for job in planted]
    assert (await scheduler.schedules.get("s")).next_at == place
    cancelled = await scheduler.store.find(JobFilter(states=frozenset({State.CANCELLED})))
    assert {job.id for job in cancelled} == {job.id for job in planted[:2]}
