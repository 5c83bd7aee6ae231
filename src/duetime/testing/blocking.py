"""The testing kit for tests without an event loop; each verb is its async twin, run to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import ParamSpec, TypeVar

from duetime.errors import BlockingCallInLoop
from duetime.model.time import Duration
from duetime.scheduler.records import JobRecord
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.task import Request
from duetime.testing import draining, enqueued, performing
from duetime.testing.enqueued import AnyTask

P = ParamSpec("P")
R = TypeVar("R")


def drain(
    scheduler: Scheduler,
    *,
    until: Duration | datetime | None = None,
    schedules: bool = True,
    concurrency: int = 10,
    most: int = draining.MOST,
) -> list[JobRecord]:
    """Run all jobs that are due; see `duetime.testing.drain`."""
    return scheduler.sync.run(
        draining.drain(scheduler, until=until, schedules=schedules, concurrency=concurrency, most=most)
    )


def assert_enqueued(
    scheduler: Scheduler,
    task: AnyTask,
    /,
    *args: object,
    queue: str | None = None,
    key: str | None = None,
    priority: int | None = None,
    tags: Sequence[str] = (),
    due_at: datetime | None = None,
    times: int | None = None,
    **kwargs: object,
) -> list[JobRecord]:
    """Return the jobs of a task with these arguments; see `duetime.testing.assert_enqueued`."""
    return scheduler.sync.run(
        enqueued.assert_enqueued(
            scheduler,
            task,
            *args,
            queue=queue,
            key=key,
            priority=priority,
            tags=tags,
            due_at=due_at,
            times=times,
            **kwargs,
        )
    )


def refute_enqueued(
    scheduler: Scheduler,
    task: AnyTask,
    /,
    *args: object,
    queue: str | None = None,
    key: str | None = None,
    priority: int | None = None,
    tags: Sequence[str] = (),
    due_at: datetime | None = None,
    **kwargs: object,
) -> None:
    """Fail when a task was enqueued with these arguments; see `duetime.testing.refute_enqueued`."""
    scheduler.sync.run(
        enqueued.refute_enqueued(
            scheduler,
            task,
            *args,
            queue=queue,
            key=key,
            priority=priority,
            tags=tags,
            due_at=due_at,
            **kwargs,
        )
    )


def perform(task: Request[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run one call as a worker would; see `duetime.testing.perform`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(performing.perform(task, *args, **kwargs))
    text = "a blocking verb would block the running event loop; await duetime.testing.perform(...)"
    raise BlockingCallInLoop(text)
