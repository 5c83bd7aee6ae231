"""Workers as a program opens them: their settings, and the open scheduler they need."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from duetime.model.text import Size
from duetime.model.time import Duration
from duetime.model.urls import redact
from duetime.runtime.options import QueueLimits, WorkerOptions
from duetime.runtime.worker import Worker
from duetime.scheduler.lookup import check_not_moved

if TYPE_CHECKING:
    from duetime.scheduler.scheduler import Scheduler


class WorkerSettings(TypedDict, total=False):
    """What users may write in `scheduler.worker(...)`."""

    concurrency: int
    queues: QueueLimits
    schedules: bool
    jobs: bool
    grace: Duration
    lease: Duration
    window: Duration
    retention: Duration | None
    capture_logs: bool
    cpu_children: int | None
    cpu_max_jobs: int | None
    cpu_max_memory: Size | None
    keep_per_schedule: int
    dedicated: bool


@asynccontextmanager
async def open_worker(scheduler: Scheduler, options: WorkerOptions) -> AsyncGenerator[Worker]:
    """Run a worker, and keep the scheduler open until the last of its threads has ended."""
    await scheduler.open()
    lingering: asyncio.Task[None] | None = None
    try:
        check_not_moved(scheduler.store)
        if options.schedules:
            await scheduler.put_declared()
        worker = Worker(
            scheduler.store,
            scheduler.tasks,
            options,
            middleware=scheduler.wrapping,
            events=scheduler.events,
            declared=scheduler.declared,
            where=partial(redact, scheduler.url),
        )
        await worker.start()
        try:
            yield worker
        finally:
            lingering = await worker.stop()
    finally:
        if lingering is None:
            await scheduler.close()
        else:
            scheduler.close_after(lingering)
