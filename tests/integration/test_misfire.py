"""Occurrences that fell due while every process was down: what runs, what does not, and the record of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from duetime import Scheduler, cron
from duetime.model.schedule.record import ScheduleUpdate
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import HOUR, Instant
from duetime.testing import FakeClock, drain
from tests.integration.occurrences import records

Told: TypeAlias = list[tuple[str, str | None, int]]


def deploy(url: str, clock: FakeClock, **policy: Any) -> Scheduler:
    """The code of a new process, with a schedule for every full hour."""
    scheduler = Scheduler(url, clock=clock)

    @scheduler.schedule(cron("0 * * * *"), name="hourly", **policy)
    @scheduler.task(name="report")
    async def report() -> None: ...

    return scheduler


async def live_through(url: str, clock: FakeClock, outage: str, **policy: Any) -> list[StoredJob]:
    """Deploy, be down for some time, deploy again, and return what became of the schedule."""
    await drain(deploy(url, clock, **policy))
    clock.advance(outage)
    scheduler = deploy(url, clock, **policy)
    await drain(scheduler)
    async with scheduler:
        return await records(scheduler.store, "hourly")


def told(found: list[StoredJob]) -> Told:
    return [(record.state.value, record.reason, record.span_count) for record in found]


SKIPPED, RAN = State.SKIPPED.value, State.SUCCEEDED.value


@pytest.mark.covers("missed-while-down")
@pytest.mark.parametrize(
    ("policy", "outage", "expected"),
    [
        ({}, "90m", [(RAN, None, 1)]),
        ({}, "390m", [(SKIPPED, "misfire", 5), (RAN, None, 1)]),
        ({"misfire_window": "10m"}, "390m", [(SKIPPED, "misfire", 6)]),
        ({"misfire": "skip"}, "390m", [(SKIPPED, "misfire", 6)]),
        ({"misfire": "skip"}, "6h", [(SKIPPED, "misfire", 5), (RAN, None, 1)]),
        ({"misfire": "all"}, "3h", [(RAN, None, 1)] * 3),
        (
            {"misfire": "all", "misfire_limit": 2},
            "390m",
            [(SKIPPED, "misfire", 4), (RAN, None, 1), (RAN, None, 1)],
        ),
        (
            {"misfire": "all", "misfire_window": "2h"},
            "390m",
            [(SKIPPED, "misfire", 4), (RAN, None, 1), (RAN, None, 1)],
        ),
        (
            {"misfire": "all", "overlap": "queue_one"},
            "390m",
            [(RAN, None, 1), (RAN, None, 1), (SKIPPED, "overlap", 4)],
        ),
        ({"misfire": "all", "overlap": "cancel_running"}, "390m", [(SKIPPED, "overlap", 5), (RAN, None, 1)]),
    ],
)
async def test_what_fell_due_while_all_were_down_runs_or_is_recorded_as_the_policy_says(
    store_url: str, policy: dict[str, Any], outage: str, expected: Told
) -> None:
    clock = FakeClock()
    first = clock.now() + HOUR
    found = await live_through(store_url, clock, outage, **policy)
    assert told(found) == expected
    assert [_first(record) for record in found] == _following(first, found)


def _first(record: StoredJob) -> Instant | None:
    return record.occurrence if record.span_first is None else record.span_first


def _following(first: Instant, found: list[StoredJob]) -> list[Instant]:
    """Where each record has to begin when they account for every hour from the first on, once."""
    begins = [first]
    for record in found:
        begins.append(begins[-1] + record.span_count * HOUR)
    return begins[:-1]


@pytest.mark.covers("missed-while-down")
@pytest.mark.parametrize(("overlap", "side_by_side"), [("skip", False), ("allow", True)])
async def test_what_was_missed_runs_one_after_the_other_unless_it_may_overlap(
    store_url: str, overlap: Any, side_by_side: bool
) -> None:
    clock, running, peak = FakeClock(), 0, 0
    scheduler = Scheduler(store_url, clock=clock)

    @scheduler.schedule(cron("0 * * * *"), misfire="all", overlap=overlap)
    @scheduler.task(name="work")
    async def work() -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        # Others get the chance to start beside this one.
        await scheduler.store.now()
        running -= 1

    await drain(scheduler)
    clock.advance("5h")
    assert len(await drain(scheduler)) == 5
    assert (peak > 1) is side_by_side


async def test_a_pause_with_an_end_goes_on_by_itself_and_leaves_one_record(store_url: str) -> None:
    clock = FakeClock()
    scheduler = deploy(store_url, clock)
    await drain(scheduler)
    async with scheduler:
        store = scheduler.store
        (before,) = await store.get_schedules(["hourly"])
        until = clock.now() + 4 * HOUR
        pause = replace(before, paused_at=clock.now(), paused_by="ann", paused_until=until)
        assert await store.write_schedules([ScheduleUpdate(before=before, after=pause)])
        await drain(scheduler, until="6h")
        (after,) = await store.get_schedules(["hourly"])
        assert (after.paused_at, after.paused_by, after.paused_until) == (None, None, None)
        assert told(await records(store, "hourly")) == [(SKIPPED, "paused", 3), *[(RAN, None, 1)] * 3]


@pytest.mark.parametrize("wrong", [24 * HOUR, -1, None])
async def test_a_time_that_zone_data_has_moved_is_put_right_when_a_worker_starts(
    store_url: str, wrong: int | None
) -> None:
    clock = FakeClock()
    scheduler = deploy(store_url, clock)
    await drain(scheduler)
    async with scheduler:
        store = scheduler.store
        (before,) = await store.get_schedules(["hourly"])
        assert before.next_at is not None
        moved = replace(before, next_at=None if wrong is None else before.next_at + wrong)
        assert await store.write_schedules([ScheduleUpdate(before=before, after=moved)])
        await drain(scheduler, until="2h")
        assert told(await records(store, "hourly")) == [(RAN, None, 1)] * 2
