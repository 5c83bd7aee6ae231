"""Schedules are paused, resumed and deleted, and the history tells by whom."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from duetime import Scheduler, State, at, cron, every
from duetime.errors import (
    InvalidTime,
    ScheduleNotFound,
)
from duetime.scheduler.task import AsyncTask
from duetime.testing.clock import FakeClock
from tests.integration.schedules.kit import NOON, records


async def test_one_record_tells_what_did_not_run_during_a_pause(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", cron("0 * * * *"), report, args=("x",))
    await scheduler.schedules.pause("often", reason="audit", until="2d", by="bob")
    paused = await scheduler.schedules.get("often")
    assert (paused.paused_by, paused.paused_until) == ("bob", NOON + timedelta(days=2))
    clock.advance("1d")
    await scheduler.schedules.resume("often", by="alice")
    [record] = await records(scheduler, schedule="often")
    assert (record.state, record.reason, record.occurrences) == (State.SKIPPED, "paused", 24)
    often = await scheduler.schedules.get("often")
    assert (often.state, often.next_at) == ("active", NOON + timedelta(days=1, hours=1))
    assert (often.paused_by, often.paused_reason, often.paused_until) == (None, None, None)


async def test_a_schedule_that_is_not_paused_goes_on_as_it_does(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance("90m")
    before = await scheduler.schedules.get("often")
    await scheduler.schedules.resume("often")
    assert await scheduler.schedules.get("often") == before


async def test_a_pause_that_is_over_already_is_refused(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    with pytest.raises(InvalidTime, match="lies in the past"):
        await scheduler.schedules.pause("often", until=NOON - timedelta(minutes=1))
    assert (await scheduler.schedules.get("often")).state == "active"


async def test_a_deleted_schedule_is_gone(scheduler: Scheduler, report: AsyncTask[[str, int], None]) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    await scheduler.schedules.delete("often", by="alice")
    for verb in (scheduler.schedules.get, scheduler.schedules.delete, scheduler.schedules.pause):
        with pytest.raises(ScheduleNotFound, match="'often'"):
            await verb("often")


async def test_a_schedule_whose_last_time_has_come_has_ended(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("once", at(NOON + timedelta(hours=1)), report, args=("x",))
    await scheduler.schedules.pause("once")
    clock.advance("2h")
    await scheduler.schedules.resume("once")
    assert (await scheduler.schedules.get("once")).state == "ended"


async def test_the_history_tells_what_was_done_and_by_whom(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    schedules = scheduler.schedules
    await schedules.put("often", every("1h"), report, args=("x",), by="alice")
    await schedules.put("often", every("1h"), report, args=("x",), by="nobody")
    await schedules.edit("often", priority=2, by="bob")
    await schedules.pause("often", reason="audit", by="carol")
    clock.advance("1s")
    await schedules.resume("often", by="dave")
    await schedules.delete("often", by="erin")
    told = [(change.verb, change.who) for change in await schedules.history("often")]
    assert told == [
        ("delete", "erin"),
        ("resume", "dave"),
        ("pause", "carol"),
        ("edit", "bob"),
        ("put", "alice"),
    ]
    [edit] = [change for change in await schedules.history("often") if change.verb == "edit"]
    assert (edit.detail, edit.at) == ({"priority": [5, 2]}, NOON)
    assert len(await schedules.history("often", limit=2)) == 2


async def test_who_asks_is_the_user_of_this_process_unless_told(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    [change] = await scheduler.schedules.history("often")
    assert re.fullmatch(r".+@.+", change.who)
