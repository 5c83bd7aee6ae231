"""Schedules whose trigger only a later version can read are shown, left alone, and can be replaced."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from duetime import Scheduler, State, every
from duetime.errors import InvalidTrigger
from duetime.model.schedule.record import ScheduleUpdate
from duetime.testing.clock import FakeClock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SPEC = '{"type":"moon","phase":"full"}'


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
async def scheduler(clock: FakeClock) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler("sqlite://", clock=clock)

    @scheduler.task(name="work")
    async def work() -> None: ...

    async with scheduler:
        await scheduler.schedules.put("sound", every("1h"), "work")
        await scheduler.schedules.put("moon", every("1h"), "work")
        [before] = await scheduler.store.get_schedules(["moon"])
        await scheduler.store.write_schedules(
            [ScheduleUpdate(before=before, after=replace(before, trigger=SPEC))]
        )
        yield scheduler


async def test_it_is_shown_with_what_is_stored_and_why_it_cannot_be_read(scheduler: Scheduler) -> None:
    moon, sound = await scheduler.schedules.list()
    assert moon.trigger.to_spec() == {"type": "moon", "phase": "full"}
    assert sound.description.startswith("every hour")
    assert moon.description.startswith("a trigger that cannot be read here: unknown trigger type 'moon'")
    assert (moon.state, moon.next_at) == ("parked", NOON + timedelta(hours=1))
    assert await scheduler.schedules.get("moon") == moon
    assert await scheduler.schedules.preview("moon") == []


async def test_it_can_be_replaced_by_one_that_can_be_read(scheduler: Scheduler) -> None:
    assert await scheduler.schedules.put("moon", every("2h"), "work") == "changed"
    assert (await scheduler.schedules.get("moon")).next_at == NOON + timedelta(hours=2)


async def test_its_trigger_and_its_options_can_be_edited(scheduler: Scheduler) -> None:
    await scheduler.schedules.edit("moon", priority=1)
    assert (await scheduler.schedules.get("moon")).trigger.to_spec()["type"] == "moon"
    await scheduler.schedules.edit("moon", trigger=every("2h"))
    assert (await scheduler.schedules.get("moon")).next_at == NOON + timedelta(hours=2)


async def test_a_pause_of_it_can_end_and_whoever_can_read_it_looks_at_once(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    await scheduler.schedules.pause("moon")
    clock.advance("3h")
    await scheduler.schedules.resume("moon")
    moon = await scheduler.schedules.get("moon")
    assert (moon.state, moon.next_at) == ("parked", NOON + timedelta(hours=3))
    assert await scheduler.jobs.list(schedule="moon", state=State.SKIPPED) == []


async def test_what_needs_its_times_says_why_there_are_none(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidTrigger, match="moon"):
        await scheduler.schedules.skip("moon")
    with pytest.raises(InvalidTrigger, match="moon"):
        await scheduler.schedules.backfill("moon", NOON - timedelta(days=1), NOON)


async def test_an_export_leaves_it_out_and_says_so(scheduler: Scheduler) -> None:
    found = await scheduler.schedules.export()
    assert (found.count, found.notes) == (
        1,
        ("moon has a trigger that cannot be read here; it is left out",),
    )
