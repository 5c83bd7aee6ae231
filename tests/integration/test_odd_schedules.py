"""One schedule that cannot be read, whatever is wrong with its row: it waits and is shown, and all others fire."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from duetime import Scheduler, every
from duetime.errors import StoreError
from duetime.model.states import State
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.scheduler.explanations import check_schedules
from duetime.testing import FakeClock
from tests.support.edits import edit
from tests.unit.runtime.kit import NoHealth

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DEEP = "[" * 20_000 + "]" * 20_000
"""Deeper than any reader goes, and short enough for every column."""

pytestmark = pytest.mark.covers("odd-schedule")

UNREADABLE: dict[str, tuple[str, str | int]] = {
    "a trigger nested without end": ("trigger", DEEP),
    "a trigger nested a little too deep": ("trigger", '{"type":"union","parts":[' * 300 + "]}" * 300),
    "a calendar nested without end": ("trigger", f'{{"type":"except","calendar":{DEEP}}}'),
    "a trigger that is no JSON": ("trigger", "every day"),
    "a trigger that is a number": ("trigger", "7"),
    "a trigger of another version": ("trigger", '{"type":"moon"}'),
    "a trigger in no zone": ("trigger", '{"type":"cron","expression":"* * * * *","tz":"Nowhere/City"}'),
    "a trigger with a huge number": ("trigger", f'{{"type":"every","interval":1{"0" * 5_000},"start":0}}'),
    "a trigger of other types": ("trigger", '{"type":"every","interval":{},"start":[]}'),
    "an instant out of range": ("trigger", '{"type":"at","instants":[9e99]}'),
    "terms nested without end": ("terms", DEEP),
    "terms that are no object": ("terms", "7"),
    "tags that are none": ("terms", '{"tags": [1, {}]}'),
    "a length that is a text": ("terms", '{"expires": "soon"}'),
    "an overlap of another version": ("overlap", "sometimes"),
    "a misfire of another version": ("misfire", "twice"),
    "a choice of another version": ("on_crash", "perhaps"),
}
SHOWN: dict[str, tuple[str, str | int]] = {
    "arguments nested without end": ("payload", DEEP),
    "a time beyond the calendar": ("updated_at", 2**62),
    "a declaration nested without end": ("declared", DEEP),
    "a queue with a line break": ("queue", "a\nb"),
}
"""What is odd, but not in the way of its jobs."""
UNTYPED: dict[str, tuple[str, str | int]] = {
    "a time that is a text": ("fired_through", "soon"),
    "a count that is a text": ("made", "many"),
    "a length that is no number": ("misfire_window", "long"),
    "a start of the streak that is a text": ("streak_from", "then"),
    "a priority that is a text": ("priority", "high"),
    "a time of creation that is a text": ("created_at", "once"),
}
"""What SQLite and Redis keep in a column of numbers."""


@dataclass
class Place:
    url: str
    clock: FakeClock
    scheduler: Scheduler

    async def spoil(self, column: str, value: str | int) -> None:
        await edit(self.url, "schedule", "odd", column, value)

    async def fire(self) -> dict[str, int]:
        """Fire what is due, and tell how many jobs each schedule has then."""
        await ScheduleFirer(self.scheduler.store, NoHealth()).round()
        schedules = self.scheduler.schedules
        return {one.name: one.live for one in await schedules.list()}


@pytest.fixture
async def place(store_url: str) -> AsyncIterator[Place]:
    async with opened(store_url) as place:
        yield place


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Place]:
    """A store with two schedules that are due."""
    clock = FakeClock(NOON)
    scheduler = Scheduler(url, clock=clock)

    @scheduler.task(name="work")
    async def work() -> None: ...

    async with scheduler:
        for name in ("odd", "sound"):
            await scheduler.schedules.put(name, every("1h"), "work", pause_after=3)
        clock.advance("1h")
        yield Place(url, clock, scheduler)


def of(kinds: dict[str, tuple[str, str | int]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("column", "value"), kinds.values(), ids=kinds.keys())


@of(UNREADABLE)
async def test_it_waits_and_says_why_while_the_others_fire(
    place: Place, column: str, value: str | int
) -> None:
    await place.spoil(column, value)
    assert await place.fire() == {"odd": 0, "sound": 1}
    schedules = place.scheduler.schedules
    odd, sound = await schedules.list()
    assert (odd.state, sound.state) == ("parked", "active")
    assert "cannot be read" in odd.description
    assert len(odd.description) < 1_000
    assert await schedules.get("odd") == odd
    assert await schedules.preview("odd") == []
    assert "cannot be read" in str(await schedules.explain("odd"))
    assert (await schedules.export()).notes
    assert "odd" in (await schedules.forecast()).left_out
    assert not (await check_schedules(place.scheduler.store)).ok


@of(UNREADABLE)
async def test_it_fires_again_once_somebody_has_put_it(place: Place, column: str, value: str | int) -> None:
    await place.spoil(column, value)
    assert await place.scheduler.schedules.put("odd", every("30m"), "work", priority=1) == "changed"
    place.clock.advance("30m")
    assert (await place.fire())["odd"] == 1
    assert await place.scheduler.schedules.history("odd")


@of(UNREADABLE | SHOWN)
async def test_it_can_be_paused_resumed_and_deleted(place: Place, column: str, value: str | int) -> None:
    await place.spoil(column, value)
    schedules = place.scheduler.schedules
    await schedules.pause("odd", reason="a look at it")
    assert (await schedules.get("odd")).paused
    await schedules.resume("odd")
    await schedules.delete("odd")
    assert [one.name for one in await schedules.list()] == ["sound"]


@of(SHOWN)
async def test_what_is_odd_elsewhere_keeps_it_from_nothing(
    place: Place, column: str, value: str | int
) -> None:
    await place.spoil(column, value)
    assert await place.fire() == {"odd": 1, "sound": 1}
    assert len(await place.scheduler.jobs.list()) == 2
    assert "sound" in (await place.scheduler.schedules.export()).text
    json.dumps((await place.scheduler.schedules.get("odd")).arguments)


@of(UNTYPED)
async def test_a_text_in_place_of_a_number_stops_it_alone(
    untyped_url: str, column: str, value: str | int
) -> None:
    async with opened(untyped_url) as place:
        await place.spoil(column, value)
        assert (await place.fire())["sound"] == 1
        schedules = place.scheduler.schedules
        odd, sound = await schedules.list()
        assert (odd.state, sound.state) == ("parked", "active")
        assert f"{column} is" in odd.description
        assert "cannot be read" in str(await schedules.explain("odd"))
        with pytest.raises(StoreError, match=f"cannot be read: {column} is"):
            await schedules.put("odd", every("30m"), "work", priority=1)
        await schedules.delete("odd")


async def test_a_next_time_that_is_a_text_stops_no_other_in_sqlite(sqlite_url: str) -> None:
    async with opened(sqlite_url) as place:
        await place.spoil("next_at", "soon")
        assert await place.fire() == {"odd": 0, "sound": 1}
        assert "next_at is 'soon'" in (await place.scheduler.schedules.get("odd")).description


async def test_a_declaration_that_cannot_be_read_keeps_no_worker_from_starting(place: Place) -> None:
    @place.scheduler.schedule(every("1h"), name="declared")
    @place.scheduler.task(name="more")
    async def more() -> None: ...

    await place.scheduler.put_declared()
    await edit(place.url, "schedule", "declared", "declared", DEEP)
    await place.scheduler.put_declared()
    declared = await place.scheduler.schedules.get("declared")
    assert (declared.state, declared.next_at) == ("active", NOON + timedelta(hours=2))
    assert State.FAILED not in {job.state for job in await place.scheduler.jobs.list()}
