"""Schedules whose next time takes a long search: they go on, each at its time, and end only on proof."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from duetime import Scheduler, calendars, cron
from duetime.errors import InvalidTime, NothingToSkip
from duetime.model.triggers.base import Trigger
from duetime.scheduler.task import AsyncTask
from duetime.testing import FakeClock, drain
from tests.integration.schedules.kit import NOON, plant

LORD_HOWE = "Australia/Lord_Howe"
# Both are swallowed by the gap of half an hour in October, and come as it ends: on a Sunday.
GAP = cron("0-28/2 2 * * *", tz=LORD_HOWE) & cron("1-29/2 2 * * *", tz=LORD_HOWE)
CHANGE = datetime(2026, 10, 3, 15, 30, tzinfo=UTC)
# No rule tells that they never come together, and a search gets on by an hour or two.
NEVER = cron("*/2 * * * * *") & cron("1-59/2 * * * * *", tz="Asia/Tokyo")
MORNING = cron("0 9 * * *")


def a_task(scheduler: Scheduler) -> AsyncTask[[], None]:
    @scheduler.task(name="report")
    async def report() -> None: ...

    return report


async def declare(scheduler: Scheduler, trigger: Trigger) -> None:
    scheduler.schedule(trigger, name="report")(a_task(scheduler))
    await scheduler.put_declared()


def utc(month: int, day: int, hour: int, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, second, tzinfo=UTC)


@pytest.mark.covers("combined-trigger-ends")
async def test_a_rare_rule_beside_a_daily_one_goes_on_after_a_change_of_the_clock(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    clock.set(CHANGE - timedelta(days=3))
    await declare(scheduler, (GAP | cron("0 9 * * *", tz=LORD_HOWE)) - calendars.weekends())
    ran = await drain(scheduler, until="6d")
    assert [job.occurrence for job in ran] == [
        utc(9, 30, 22, 30),
        utc(10, 1, 22, 30),
        utc(10, 4, 22),
        utc(10, 5, 22),
    ]
    assert (await scheduler.schedules.get("report")).state == "active"


@pytest.mark.covers("combined-trigger-ends")
async def test_a_part_that_is_searched_for_in_vain_keeps_no_other_from_its_time(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    await declare(scheduler, (NEVER | MORNING) - calendars.weekends())
    record = await scheduler.schedules.get("report")
    assert (record.state, record.next_at) == ("active", None)
    ran = await drain(scheduler, until="2d")
    assert [(job.occurrence, job.started_at) for job in ran] == [(utc(3, 3, 9),) * 2, (utc(3, 4, 9),) * 2]
    clock.set(utc(3, 5, 8, 59))
    await drain(scheduler)
    assert (await scheduler.schedules.get("report")).next_at == utc(3, 5, 9)


@pytest.mark.covers("combined-trigger-ends")
async def test_a_schedule_of_which_nothing_is_found_is_looked_at_again_and_says_so(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    await scheduler.schedules.put("often", NEVER, a_task(scheduler))
    limits: list[datetime] = []
    for _ in range(3):
        record = await scheduler.schedules.get("often")
        assert (record.state, record.next_at) == ("active", None)
        assert record.searched_until is not None
        limits.append(record.searched_until)
        text = str(await scheduler.schedules.explain("often"))
        until = record.searched_until
        assert (
            f"No next occurrence is found up to {until:%Y-%m-%d %H:%M:%S} UTC. The search goes on then."
            in text
        )
        assert "ended" not in text
        assert await scheduler.schedules.preview("often", 3) == []
        # What is due within a second is planted, and this is no occurrence.
        clock.set(until - timedelta(milliseconds=500))
        await plant(scheduler)
    assert NOON + timedelta(hours=1) < limits[0] < limits[1] < limits[2]
    assert list(await scheduler.jobs.list()) == []
    with pytest.raises(NothingToSkip, match="no occurrence of schedule 'often' is found up to 2026"):
        await scheduler.schedules.skip("often")
    clock.set(NOON + timedelta(days=3))
    with pytest.raises(InvalidTime, match="takes too long to tell; ask for a shorter time"):
        await scheduler.schedules.backfill("often", NOON, NOON + timedelta(days=2))
    assert (await scheduler.schedules.forecast(days=1)).at_least


async def test_a_long_outage_is_caught_up_with_look_by_look(scheduler: Scheduler, clock: FakeClock) -> None:
    await declare(scheduler, NEVER | MORNING)
    clock.set(utc(3, 5, 9, 0, 30))
    ran = await drain(scheduler)
    assert [job.occurrence for job in ran] == [utc(3, 5, 9)]
    missed = await scheduler.jobs.list(state="skipped")
    assert sum(job.occurrences for job in missed) == 2
    await scheduler.schedules.pause("report", until=utc(3, 8, 12))
    clock.set(utc(3, 8, 12, 30))
    await drain(scheduler)
    meanwhile = [job for job in await scheduler.jobs.list(state="skipped") if job.reason == "paused"]
    assert sum(job.occurrences for job in meanwhile) == 3
    record = await scheduler.schedules.get("report")
    assert record.state == "active"
