"""What was missed is made up for in any order and any portions, and each occurrence is accounted for once."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from duetime import Scheduler, cron
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.stores.base import JobFilter
from duetime.testing.clock import FakeClock

START = datetime(2026, 3, 2, tzinfo=UTC)
MISSED = 1_199
"""More than are stored in one transaction, twice."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
async def scheduler(store_url: str, clock: FakeClock) -> AsyncIterator[Scheduler]:
    """A schedule of every minute that nobody has fired for long."""
    scheduler = Scheduler(store_url, clock=clock)

    @scheduler.task(name="work")
    async def work() -> None: ...

    async with scheduler:
        await scheduler.schedules.put("often", cron("* * * * *"), work, misfire="skip", misfire_window="1s")
        clock.advance(timedelta(minutes=MISSED, seconds=30))
        await ScheduleFirer(scheduler.store, ServiceHealth()).round()
        yield scheduler


async def found(scheduler: Scheduler) -> list[StoredJob]:
    return await scheduler.store.occurrences("often", since=0, until=2**62, limit=9_999)


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


@pytest.mark.parametrize(
    "parts", [[(1, MISSED)], [(1, 101), (1, MISSED)], [(600, 700), (200, 1_100), (1, 5), (1, MISSED)]]
)
async def test_whatever_is_asked_for_every_occurrence_has_one_record(
    scheduler: Scheduler, parts: list[tuple[int, int]]
) -> None:
    assert sum(record.span_count for record in await found(scheduler)) == MISSED
    done = set[int]()
    for first, last in parts:
        before = len(done)
        done |= set(range(first, last + 1))
        made = await scheduler.schedules.backfill("often", minute(first), minute(last))
        assert (made.occurrences, made.enqueued) == (last - first + 1, len(done) - before)
        records = await found(scheduler)
        assert sum(record.span_count for record in records) == MISSED
        assert sum(record.state is State.PENDING for record in records) == len(done)
    assert {record.state for record in await found(scheduler)} == {State.PENDING}


async def test_the_jobs_are_in_the_order_of_their_occurrences(scheduler: Scheduler) -> None:
    await scheduler.schedules.backfill("often", minute(1), minute(MISSED))
    found = await scheduler.store.find(JobFilter(states=frozenset({State.PENDING}), limit=9_999))
    jobs = sorted(found, key=lambda job: (job.due_at, job.id))
    occurrences = [job.occurrence or 0 for job in jobs]
    assert occurrences == sorted(occurrences)


async def test_what_was_cancelled_before_it_began_can_be_made_up_for(scheduler: Scheduler) -> None:
    await scheduler.schedules.backfill("often", minute(7), minute(7))
    (job,) = await scheduler.jobs.list(state=State.PENDING)
    await scheduler.jobs.cancel(job.id)
    planned = await scheduler.schedules.backfill("often", minute(7), minute(7), dry_run=True)
    assert planned == await scheduler.schedules.backfill("often", minute(7), minute(7))
    assert planned.enqueued == 1
    assert (await scheduler.schedules.backfill("often", minute(7), minute(7))).enqueued == 0


async def test_the_next_occurrence_ends_neither_what_was_made_up_for_nor_what_was_triggered(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    schedules, firer = scheduler.schedules, ScheduleFirer(scheduler.store, ServiceHealth())
    await schedules.edit("often", overlap="cancel_running", misfire="latest", misfire_window="1h")
    await schedules.backfill("often", minute(1), minute(9))
    await schedules.trigger("often")
    for _ in range(2):
        clock.advance("1m")
        await firer.round()
    states = Counter(job.state for job in await found(scheduler))
    assert (states[State.PENDING], states[State.CANCELLED]) == (9 + 1, 1), (
        "one regular one gave way to the next"
    )
    assert (await schedules.get("often")).live == 9 + 1 + 1
