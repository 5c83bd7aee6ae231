"""An edit changes what is given and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from duetime import Scheduler, State, cron, every
from duetime.errors import (
    InvalidArguments,
    InvalidOption,
)
from duetime.scheduler.task import AsyncTask
from duetime.testing.clock import FakeClock
from tests.integration.schedules.kit import NOON, records


async def test_an_edit_changes_what_is_given_and_nothing_else(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put(
        "daily", cron("0 3 * * *"), report, args=("x",), priority=2, overlap="queue_all", overlap_limit=3
    )
    before = await scheduler.schedules.get("daily")
    assert await scheduler.schedules.edit("daily", overlap_limit=7, tags=["new"]) == "changed"
    daily = await scheduler.schedules.get("daily")
    assert (daily.overlap, daily.overlap_limit, daily.tags) == ("queue_all", 7, ("new",))
    assert (daily.priority, daily.next_at, daily.arguments) == (2, before.next_at, {"kind": "x"})


async def test_an_edit_to_what_is_there_changes_nothing(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("daily", cron("0 3 * * *"), report, args=("x",))
    assert await scheduler.schedules.edit("daily", trigger=cron("0 3 * * *"), args=["x"]) == "unchanged"


async def test_details_of_a_policy_go_with_it(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put(
        "daily", cron("0 3 * * *"), report, args=("x",), misfire="all", misfire_limit=5, retries=4
    )
    await scheduler.schedules.edit("daily", misfire="latest", retries=None)
    daily = await scheduler.schedules.get("daily")
    assert (daily.misfire, daily.misfire_window, daily.misfire_limit) == ("latest", timedelta(hours=1), 100)
    assert daily.retries is None


async def test_an_edit_of_arguments_is_checked_by_the_signature(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("daily", cron("0 3 * * *"), report, args=("x",))
    with pytest.raises(InvalidArguments):
        await scheduler.schedules.edit("daily", kwargs={"colour": "red"})
    await scheduler.schedules.edit("daily", args=["y"], kwargs={"copies": 2})
    assert (await scheduler.schedules.get("daily")).arguments == {"kind": "y", "copies": 2}


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (InvalidArguments, {"args": 5}),
        (InvalidArguments, {"kwargs": 5}),
        (InvalidOption, {"tags": None}),
        (InvalidOption, {"tags": 5}),
        (InvalidOption, {"misfire_window": 0}),
    ],
)
async def test_an_edit_to_what_is_none_changes_nothing(
    scheduler: Scheduler, report: AsyncTask[[str, int], None], error: type[Exception], change: dict[str, Any]
) -> None:
    await scheduler.schedules.put("daily", every("1h"), report, args=("x",))
    before = await scheduler.schedules.get("daily")
    with pytest.raises(error):
        await scheduler.schedules.edit("daily", **change)
    assert await scheduler.schedules.get("daily") == before


async def test_an_edit_says_what_to_change(scheduler: Scheduler, report: AsyncTask[[str, int], None]) -> None:
    await scheduler.schedules.put("daily", cron("0 3 * * *"), report, args=("x",))
    with pytest.raises(InvalidOption, match="say what to change"):
        await scheduler.schedules.edit("daily")


async def test_overdue_runs_of_an_old_trigger_leave_a_record(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance("3h30m")
    await scheduler.schedules.edit("often", trigger=cron("0 3 * * *"))
    [record] = await records(scheduler, schedule="often")
    assert (record.state, record.reason, record.occurrences) == (State.SKIPPED, "edited", 3)
    assert record.occurrence == NOON + timedelta(hours=3)


async def test_an_edit_to_runs_in_turn_is_refused_where_the_task_has_a_limit(scheduler: Scheduler) -> None:
    @scheduler.task(name="limited", limit=1)
    async def limited() -> None: ...

    await scheduler.schedules.put("often", every("1h"), limited)
    with pytest.raises(InvalidOption, match="limited"):
        await scheduler.schedules.edit("often", overlap="queue_one")
    assert (await scheduler.schedules.get("often")).overlap == "skip"
