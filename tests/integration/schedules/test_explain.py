"""Each reason why a schedule does not run is made to happen, and the explanation names it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from duetime import Scheduler, at, cron, every
from duetime.errors import ScheduleNotFound
from duetime.model.retention import Retention
from duetime.model.schedule.actions import park
from duetime.model.time import SECOND, from_datetime
from duetime.model.triggers.base import Trigger
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.testing import FakeClock, drain
from duetime.testing.conformance.kit import worker_info
from tests.integration.kit import Fleet, until

BERLIN = "Europe/Berlin"
FRIDAY = datetime(2026, 3, 27, 12, 0, tzinfo=UTC)
"""Two days before the clocks go forward."""
SATURDAY = datetime(2026, 3, 28, 3, 0)  # noqa: DTZ001 - as people ask
NIGHTLY = cron("0 3 * * *", tz=BERLIN)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(FRIDAY)


async def report() -> None:
    """What the schedules of these tests run."""


async def fail() -> None:
    """What never goes well."""
    raise RuntimeError


async def declare(
    scheduler: Scheduler, trigger: Trigger = NIGHTLY, *, task: Callable[..., Any] = report, **options: Any
) -> None:
    """Have the code declare a schedule."""
    scheduler.schedule(trigger, name="nightly", **options)(scheduler.task(name="report")(task))
    await scheduler.put_declared()


async def redeclare(scheduler: Scheduler, trigger: Trigger) -> None:
    """Deploy code that declares it in another way."""
    other = Scheduler(scheduler.url, clock=scheduler.clock)
    async with other:
        await declare(other, trigger)


async def hire(scheduler: Scheduler, **changes: Any) -> None:
    """Register a worker, which fires schedules and knows the task unless told otherwise."""
    info = worker_info("w1", tasks=("report",), fires=True)
    await scheduler.store.register(replace(info, **changes), lease=86_400 * SECOND)


async def fire(scheduler: Scheduler) -> None:
    """Fire what is due, and run nothing."""
    await ScheduleFirer(scheduler.store, Mock()).round()


async def told(scheduler: Scheduler, asked: datetime | None = SATURDAY) -> str:
    return str(await scheduler.schedules.explain("nightly", asked))


async def test_an_occurrence_that_ran_is_told_with_its_worker(scheduler: Scheduler) -> None:
    await declare(scheduler)
    await drain(scheduler, until="1d")
    text = await told(scheduler)
    assert "The job of its occurrence at 2026-03-28 03:00:00 Europe/Berlin ran and succeeded" in text
    assert "started 0 milliseconds after its time on worker" in text
    assert "It succeeded after" in text


@pytest.mark.covers("nothing-to-see")
async def test_a_misfire(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler, misfire="skip", misfire_window="1m")
    clock.set(FRIDAY + timedelta(hours=20))
    await fire(scheduler)
    text = await told(scheduler)
    assert "Its occurrence at 2026-03-28 03:00:00 Europe/Berlin was skipped." in text
    assert "misfire is skip: what is missed by more than its window of 1 minute does not run." in text


async def test_an_outage(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    clock.set(FRIDAY + timedelta(days=7))
    await fire(scheduler)
    text = await told(scheduler, datetime(2026, 4, 1, 3, 0))  # noqa: DTZ001
    assert (
        "one record stands for 7 occurrences, from 2026-03-28 03:00:00 Europe/Berlin to 2026-04-03 03:00:00 "
        "Europe/Berlin."
    ) in text
    assert (
        "An outage: no one fired it from 2026-03-28 03:00:00 Europe/Berlin until 2026-04-03 14:00:00 Europe/Berlin"
        in text
    )


@pytest.mark.covers("nothing-to-see")
async def test_an_overlap_names_the_run_that_was_in_the_way(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    clock.set(datetime(2026, 3, 28, 2, tzinfo=UTC))
    await fire(scheduler)
    clock.set(datetime(2026, 3, 29, 1, tzinfo=UTC))
    await fire(scheduler)
    (first,) = await scheduler.store.occurrences("nightly", since=0, until=0, limit=1)
    text = await told(scheduler, datetime(2026, 3, 29, 3, 0))  # noqa: DTZ001
    assert f"Job {first.id} of its occurrence at 2026-03-28 03:00:00 Europe/Berlin had not ended" in text
    assert "overlap is skip" in text


@pytest.mark.covers("nothing-to-see")
async def test_a_pause(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    await scheduler.schedules.pause("nightly", reason="closing the books")
    clock.set(FRIDAY + timedelta(days=1))
    await fire(scheduler)
    text = await told(scheduler)
    assert "did not run. It is paused since 2026-03-27 13:00:00 Europe/Berlin" in text
    assert "closing the books" in text
    assert "It is paused since" in await told(scheduler, None)


async def test_a_pause_that_is_over(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    await scheduler.schedules.pause("nightly", reason="closing the books", by="ada")
    clock.set(FRIDAY + timedelta(days=3))
    await scheduler.schedules.resume("nightly", by="bob")
    text = await told(scheduler)
    assert "one record stands for 3 occurrences" in text
    assert "The schedule was paused by ada: closing the books." in text


async def test_a_pause_after_failures(scheduler: Scheduler) -> None:
    await declare(scheduler, pause_after=1, task=fail)
    await drain(scheduler, until="2d")
    assert "failed" in await told(scheduler)
    text = await told(scheduler, datetime(2026, 3, 29, 3, 0))  # noqa: DTZ001
    assert "It is paused since 2026-03-29 03:00:00 Europe/Berlin by duetime: 1 failure in a row." in text


async def test_a_paused_queue(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    await hire(scheduler)
    await scheduler.queues.pause("default", reason="relay down")
    assert "Queue default is paused since" in await told(scheduler)
    clock.set(FRIDAY + timedelta(hours=14))
    await fire(scheduler)
    text = await told(scheduler)
    assert "The job of its occurrence at 2026-03-28 03:00:00 Europe/Berlin waits" in text
    assert "Queue default is paused since 2026-03-27 13:00:00 Europe/Berlin: relay down." in text


async def test_a_task_that_no_worker_knows(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    await hire(scheduler, tasks=("other",))
    assert "No worker knows task report" in await told(scheduler, None)
    clock.set(FRIDAY + timedelta(hours=14))
    await fire(scheduler)
    text = await told(scheduler)
    assert "waits" in text
    assert "No worker knows task report" in text


async def test_no_worker(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    assert "No one fires schedules: no worker is alive." in await told(scheduler)
    clock.set(FRIDAY + timedelta(hours=14))
    await fire(scheduler)
    assert "No worker is alive; start one with" in await told(scheduler)


async def test_a_queue_that_no_worker_serves(scheduler: Scheduler) -> None:
    await declare(scheduler, queue="slow")
    await hire(scheduler)
    assert "No worker serves queue slow" in await told(scheduler, None)


@pytest.mark.covers("nothing-to-see")
async def test_nobody_firing(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    await hire(scheduler, fires=False)
    clock.set(datetime(2026, 3, 28, 3, tzinfo=UTC))
    for text in [await told(scheduler), await told(scheduler, None)]:
        assert (
            "Its occurrence at 2026-03-28 03:00:00 Europe/Berlin, 1 hour ago, has not been fired yet." in text
        )
        assert "No one fires schedules: worker w1 (pid 1 on host) was told to leave them alone." in text


async def test_a_worker_that_leaves_schedules_alone_says_so_of_itself(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        await app.scheduler.schedules.put("nightly", every("1h"), app.note)
        await fleet.start(schedules=False)
        assert "No one fires schedules: worker" in await told(app.scheduler, None)
        await fleet.start()
        assert "No one fires" not in await told(app.scheduler, None)


async def test_a_gap_of_the_clock(scheduler: Scheduler) -> None:
    await declare(scheduler, cron("30 2 * * *", tz=BERLIN))
    await drain(scheduler, until="3d")
    text = await told(scheduler, datetime(2026, 3, 29, 2, 30))  # noqa: DTZ001
    assert "02:30:00 does not exist on 2026-03-29 in Europe/Berlin" in text
    assert "The job of its occurrence at 2026-03-29 03:00:00 Europe/Berlin ran and succeeded" in text


async def test_a_schedule_that_has_ended(scheduler: Scheduler) -> None:
    await declare(scheduler, at(FRIDAY + timedelta(hours=1)))
    await drain(scheduler, until="2d")
    ended = "the last occurrence of its trigger was at 2026-03-27 13:00:00 UTC."
    assert f"It had ended by then: {ended}" in await told(scheduler)
    assert f"It has ended: {ended}" in await told(scheduler, None)


@pytest.mark.covers("nothing-to-see")
async def test_a_schedule_that_was_edited(scheduler: Scheduler) -> None:
    await declare(scheduler)
    await redeclare(scheduler, cron("0 5 * * *", tz=BERLIN))
    await drain(scheduler, until="1d", schedules=False)
    text = await told(scheduler)
    assert "Its trigger has no occurrence then" in text
    assert "Its trigger was changed by code " in text
    assert "only the old one has an occurrence then" in text


async def test_a_schedule_that_no_code_declares_any_more(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    (stored,) = await scheduler.store.get_schedules(["nightly"])
    change = park(stored, now=clock.now())
    assert change is not None
    await scheduler.store.write_schedules([change])
    clock.set(FRIDAY + timedelta(days=2))
    assert "did not run. It is parked since 2026-03-27 13:00:00 Europe/Berlin" in await told(scheduler)
    await scheduler.put_declared()
    text = await told(scheduler)
    assert "one record stands for 2 occurrences" in text
    assert "The schedule was parked by duetime: no code declares it any more." in text


async def test_an_edit_before_anybody_had_fired_it(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    clock.set(FRIDAY + timedelta(hours=20))
    await scheduler.schedules.edit("nightly", trigger=cron("0 5 * * *", tz=BERLIN), by="ada")
    text = await told(scheduler)
    assert "Its occurrence at 2026-03-28 03:00:00 Europe/Berlin was skipped." in text
    assert "The schedule was changed by ada before anyone had fired it." in text


async def test_a_skip_by_hand(scheduler: Scheduler) -> None:
    await declare(scheduler)
    await scheduler.schedules.skip("nightly", by="Ada")
    text = await told(scheduler)
    assert "Its occurrence at 2026-03-28 03:00:00 Europe/Berlin will not run: skipped by Ada." in text


async def test_an_outage_that_was_made_up_for_in_part(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    clock.set(FRIDAY + timedelta(days=7))
    await fire(scheduler)
    made_up = datetime(2026, 3, 30, 1, tzinfo=UTC)
    assert (await scheduler.schedules.backfill("nightly", made_up, made_up)).enqueued == 1
    assert "The job of its occurrence at 2026-03-30 03:00:00 Europe/Berlin waits" in await told(
        scheduler, made_up
    )
    assert "one record stands for 2 occurrences" in await told(scheduler)


async def test_a_time_before_the_schedule_was_there(scheduler: Scheduler) -> None:
    await declare(scheduler)
    text = await told(scheduler, datetime(2026, 3, 27, 3, 0))  # noqa: DTZ001
    assert "The schedule was created by code " in text
    assert "10 hours after the time that you ask about" in text


async def test_a_schedule_that_was_deleted_is_still_explained(scheduler: Scheduler) -> None:
    await declare(scheduler)
    await drain(scheduler, until="1d")
    await scheduler.schedules.delete("nightly", by="ada")
    assert "ran and succeeded" in await told(scheduler)
    gone = await told(scheduler, datetime(2026, 3, 29, 3, 0))  # noqa: DTZ001
    assert "The schedule was deleted by ada." in gone
    assert "Schedule nightly was deleted by ada." in await told(scheduler, None)


async def test_a_schedule_that_never_was_is_not_found(scheduler: Scheduler) -> None:
    with pytest.raises(ScheduleNotFound, match="there is no schedule 'nightly'"):
        await told(scheduler)


async def test_a_record_that_was_pruned(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler)
    await drain(scheduler, until="3d")
    before = from_datetime(datetime(2026, 3, 28, 12, tzinfo=UTC))
    await scheduler.store.prune(Retention(before=before), after="")
    assert "records that old have been pruned" in await told(scheduler)
    assert "ran and succeeded" in await told(scheduler, datetime(2026, 3, 29, 3, 0))  # noqa: DTZ001


async def test_what_is_to_come(scheduler: Scheduler) -> None:
    await declare(scheduler)
    await hire(scheduler)
    text = await told(scheduler, datetime(2026, 3, 29, 3, 0))  # noqa: DTZ001
    assert "That is to come: its occurrence at 2026-03-29 03:00:00 Europe/Berlin, in 1 day 13 hours." in text
    assert text.endswith("Nothing is in its way now.")


async def test_how_it_stands(scheduler: Scheduler) -> None:
    await declare(scheduler)
    await drain(scheduler, until="1d")
    await hire(scheduler)
    lines = (await told(scheduler, None)).splitlines()
    assert "Schedule nightly was created: task report in queue default" in lines[0]
    assert "The job of its occurrence at 2026-03-28 03:00:00 Europe/Berlin ran and succeeded" in lines[1]
    assert "It runs next at 2026-03-29 03:00:00 Europe/Berlin" in lines[2]
    assert "Nothing is in its way." in lines[-1]


async def test_a_job_that_waits_for_the_run_before_it_says_so(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        await app.scheduler.schedules.put(
            "nightly", every("1s"), app.wait_for, args=(gate.path,), overlap="queue_one"
        )
        await fleet.start()
        running = (await fleet.entry("start")).job

        async def waiting() -> str:
            jobs = await app.scheduler.jobs.list(schedule="nightly", state="pending")
            texts = [str(await app.scheduler.jobs.explain(job.id)) for job in jobs]
            return next((text for text in texts if "waits for the run before it" in text), "")

        text = await until(waiting, what="a job that waits for its turn")
        assert "It waits for the run before it of schedule nightly." in text
        assert "Made by schedule nightly for its occurrence at" in text
        assert "A limit is reached" not in text
        assert "waits for the run" not in str(await app.scheduler.jobs.explain(running))
        gate.open()


def test_blocking_callers_are_told_the_same(store_url: str, clock: FakeClock) -> None:
    scheduler = Scheduler(store_url, clock=clock)
    with pytest.raises(ScheduleNotFound):
        scheduler.sync.schedules.explain("nightly", SATURDAY)
    asyncio.run(redeclare(scheduler, NIGHTLY))
    try:
        told = scheduler.sync.schedules.explain("nightly", SATURDAY)
        assert "That is to come: its occurrence at 2026-03-28 03:00:00 Europe/Berlin" in str(told)
    finally:
        scheduler.sync.close()
