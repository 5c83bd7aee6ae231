"""A limit that a task gets or loses later reaches the schedules that were put before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime import Limit, Scheduler, every
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.testing.clock import FakeClock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NO_LIMIT: Mapping[str, Any] = {}


async def gates(
    url: str, before: Mapping[str, Any], after: Mapping[str, Any], **options: Any
) -> set[str | None]:
    """Put a schedule, deploy its task in another way, and return the gates of all jobs that are made of it then."""
    clock = FakeClock(NOON)
    async with version(url, clock, before) as scheduler:
        await scheduler.schedules.put("s", every("1h"), "work", kwargs={"city": "Riga"}, **options)
    clock.advance("3h")
    async with version(url, clock, after) as scheduler:
        await ScheduleFirer(scheduler.store, ServiceHealth(), handlers=scheduler.tasks).round()
        await scheduler.schedules.trigger("s")
        await scheduler.schedules.backfill("s", NOON, NOON + timedelta(hours=2))
        jobs = [job for job in await scheduler.jobs.list(schedule="s") if not job.state.terminal]
        assert len(jobs) == 4
        found = await scheduler.store.get([job.id for job in jobs])
        return {job.gate for job in found}


def version(url: str, clock: FakeClock, options: Mapping[str, Any]) -> Scheduler:
    scheduler = Scheduler(url, clock=clock)

    @scheduler.task(name="work", **options)
    async def work(city: str) -> None: ...

    return scheduler


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (NO_LIMIT, {"limit": 1}, "work"),
        (NO_LIMIT, {"limit": Limit(1, by="city")}, 'work[city="Riga"]'),
        ({"limit": 1}, NO_LIMIT, None),
        (NO_LIMIT, NO_LIMIT, None),
    ],
)
async def test_jobs_pass_the_gate_that_their_task_has_today(
    sqlite_url: str, before: Mapping[str, Any], after: Mapping[str, Any], expected: str | None
) -> None:
    assert await gates(sqlite_url, before, after, overlap="allow") == {expected}


async def test_a_limit_comes_before_the_turns_of_a_schedule(sqlite_url: str) -> None:
    assert await gates(sqlite_url, NO_LIMIT, {"limit": 1}, overlap="queue_all") == {"work"}
