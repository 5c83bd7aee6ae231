"""The day of all tests here, and what they ask of a scheduler."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from duetime import JobRecord, Scheduler
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.firing import ScheduleFirer

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


async def records(scheduler: Scheduler, **query: Any) -> list[JobRecord]:
    """Return the first page of a list."""
    return [*await scheduler.jobs.list(**query)]


async def plant(scheduler: Scheduler) -> None:
    """Let the schedules fire as a worker would have them do."""
    await ScheduleFirer(scheduler.store, ServiceHealth()).round()
