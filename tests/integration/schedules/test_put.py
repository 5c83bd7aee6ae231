"""Schedules are put, or refused as a whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime import Job, Scheduler, at, cron, every
from duetime.errors import (
    InvalidArguments,
    InvalidOption,
    InvalidTask,
    InvalidTrigger,
    UnknownTask,
)
from duetime.model.triggers.base import Trigger
from duetime.scheduler.task import AsyncTask
from duetime.testing.clock import FakeClock
from tests.integration.schedules.kit import NOON, plant


async def test_a_schedule_is_put_with_the_options_of_its_task(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    answer = await scheduler.schedules.put(
        "daily", cron("0 3 * * *", tz="Europe/Riga"), report, args=("sales",), by="alice"
    )
    daily = await scheduler.schedules.get("daily")
    assert (answer, daily.owner, daily.state) == ("created", "user", "active")
    assert (daily.task, daily.arguments, daily.queue) == ("report", {"kind": "sales"}, "slow")
    assert daily.tags == ("money",)
    assert daily.next_at == datetime(2026, 3, 3, 1, tzinfo=UTC)
    assert str(daily.next_at) == "2026-03-03 03:00:00+02:00"


async def test_a_schedule_names_its_task_by_the_task_its_class_or_its_name(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    class Tidy(Job, scheduler=scheduler, name="tidy"):
        def run(self) -> None: ...

    await scheduler.schedules.put("a", every("1h"), report, args=("x",))
    await scheduler.schedules.put("b", every("1h"), "report", args=("x",))
    await scheduler.schedules.put("c", every("1h"), Tidy)
    assert [found.task for found in await scheduler.schedules.list()] == ["report", "report", "tidy"]


async def test_put_again_with_nothing_new_changes_nothing(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    before = await scheduler.schedules.get("often")
    clock.advance("10m")
    assert await scheduler.schedules.put("often", every("1h"), report, args=("x",)) == "unchanged"
    assert await scheduler.schedules.get("often") == before


async def test_put_keeps_the_times_while_the_trigger_is_the_same(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance("10m")
    assert await scheduler.schedules.put("often", every("1h"), report, args=("y",)) == "changed"
    often = await scheduler.schedules.get("often")
    assert (often.arguments, often.next_at) == ({"kind": "y"}, NOON + timedelta(hours=1))


async def test_another_trigger_counts_from_now(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance("10m")
    await scheduler.schedules.put("often", every("2h"), report, args=("x",))
    assert (await scheduler.schedules.get("often")).next_at == NOON + timedelta(hours=2, minutes=10)


async def test_put_leaves_a_pause_alone(scheduler: Scheduler, report: AsyncTask[[str, int], None]) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    await scheduler.schedules.pause("often", reason="audit", by="bob")
    await scheduler.schedules.put("often", every("3h"), report, args=("y",))
    often = await scheduler.schedules.get("often")
    assert (often.state, often.paused_reason, often.paused_by) == ("paused", "audit", "bob")


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (InvalidTrigger, {"trigger": "0 3 * * *"}),
        (UnknownTask, {"task": "reprot"}),
        (InvalidTask, {"task": print}),
        (InvalidArguments, {"args": ()}),
        (InvalidArguments, {"args": ("x", "many")}),
        (InvalidArguments, {"args": 5}),
        (InvalidArguments, {"args": "x"}),
        (InvalidArguments, {"kwargs": ["x"]}),
        (InvalidOption, {"tags": None}),
        (InvalidOption, {"misfire_window": 0}),
        (InvalidOption, {"misfire_window": "999ms"}),
        (InvalidOption, {"overlap": "sometimes"}),
        (InvalidOption, {"colour": "red"}),
        (InvalidOption, {"by": ""}),
        (ValueError, {"name": "no spaces, please"}),
    ],
)
async def test_nothing_is_stored_when_anything_is_refused(
    scheduler: Scheduler, report: AsyncTask[[str, int], None], error: type[Exception], change: dict[str, Any]
) -> None:
    asked: dict[str, Any] = {"name": "daily", "trigger": every("1h"), "task": report, "args": ("x",)}
    asked |= change
    with pytest.raises(error):
        await scheduler.schedules.put(**asked)
    assert await scheduler.schedules.list() == []


async def test_a_task_that_is_not_there_is_refused_with_the_one_that_may_be_meant(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    with pytest.raises(UnknownTask, match=f"did you mean {report.name}"):
        await scheduler.schedules.put("daily", every("1h"), "reprot")


async def test_a_task_of_another_scheduler_is_refused(scheduler: Scheduler) -> None:
    @Scheduler("sqlite://").task(name="foreign")
    async def foreign() -> None: ...

    with pytest.raises(InvalidTask, match="another scheduler"):
        await scheduler.schedules.put("s", every("1h"), foreign)


@pytest.mark.parametrize(
    ("trigger", "part"),
    [
        (at(NOON - timedelta(days=1)), "never comes"),
        (every("100ms"), "closer than 1 second"),
        (cron("0 0 1 1 *").between(end=NOON), "never comes"),
    ],
)
async def test_triggers_that_never_come_or_come_too_often_are_refused(
    scheduler: Scheduler, report: AsyncTask[[str, int], None], trigger: Trigger, part: str
) -> None:
    await scheduler.schedules.put("good", every("1h"), report, args=("x",))
    with pytest.raises(InvalidTrigger, match=part):
        await scheduler.schedules.put("bad", trigger, report, args=("x",))
    with pytest.raises(InvalidTrigger, match=part):
        await scheduler.schedules.edit("good", trigger=trigger)
    assert [found.next_at for found in await scheduler.schedules.list()] == [NOON + timedelta(hours=1)]


def test_what_code_declares_may_be_over_but_not_come_too_often(scheduler: Scheduler) -> None:
    scheduler.schedule(at(NOON - timedelta(days=1)))
    with pytest.raises(InvalidTrigger, match="closer than 1 second"):
        scheduler.schedule(every("100ms"))
    Scheduler("sqlite://", shortest_interval="100ms").schedule(every("100ms"))


async def test_what_is_over_can_be_put_again_as_it_was(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    once = at(NOON + timedelta(hours=1))
    await scheduler.schedules.put("once", once, report, args=("x",))
    clock.advance("2h")
    await plant(scheduler)
    assert await scheduler.schedules.put("once", once, report, args=("x",)) == "unchanged"
    with pytest.raises(InvalidTrigger, match="never comes"):
        await scheduler.schedules.put("twice", once, report, args=("x",))
