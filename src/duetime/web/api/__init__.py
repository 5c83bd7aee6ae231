"""The operations of the API, a file for each noun."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from duetime.web.api import (
    audit,
    bulk,
    calendar,
    description,
    events,
    failures,
    health,
    job_changes,
    jobs,
    locks,
    queues,
    schedule_changes,
    schedules,
    session,
    stats,
    tasks,
    workers,
)

ROUTERS: Final[tuple[APIRouter, ...]] = tuple(
    module.router
    # The first that fits a path serves it: what has a fixed name stands before what has any.
    for module in (
        bulk,
        jobs,
        job_changes,
        schedules,
        schedule_changes,
        queues,
        workers,
        tasks,
        failures,
        stats,
        locks,
        calendar,
        audit,
        session,
        events,
        description,
    )
)
"""What is below the prefix of the API."""
APART: Final = (health.router, session.entrance)
"""What is not below it."""
PUBLIC: Final = (*health.PUBLIC, *session.PUBLIC)
"""The methods and paths that need no user."""
HARMLESS: Final = (*session.HARMLESS, *schedule_changes.HARMLESS, *calendar.HARMLESS)
"""Those that change nothing of the scheduler's, and are for viewers, too."""
