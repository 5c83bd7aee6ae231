"""A worker together with the open scheduler it needs."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from duetime.model.text import Size
from duetime.model.time import Duration
from duetime.model.urls import redact
from duetime.runtime.options import QueueLimits, worker_options
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


class SchedulerWorker:
    """A worker together with the open scheduler it needs."""

    def __init__(self, scheduler: Scheduler, settings: WorkerSettings) -> None:
        self._scheduler = scheduler
        self._options = worker_options(**settings)
        self._worker: Worker | None = None
        self._closing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Worker:
        await self._scheduler.open()
        try:
            check_not_moved(self._scheduler.store)
            if self._options.schedules:
                await self._scheduler.put_declared()
            scheduler = self._scheduler
            worker = Worker(
                scheduler.store,
                scheduler.tasks,
                self._options,
                middleware=scheduler.wrapping,
                events=scheduler.events,
                declared=scheduler.declared,
                where=partial(redact, scheduler.url),
            )
            await worker.start()
        except BaseException:
            await self._scheduler.close()
            raise
        self._worker = worker
        return worker

    async def __aexit__(self, *exc_info: object) -> None:
        lingering = None if self._worker is None else await self._worker.stop()
        if lingering is None:
            await self._scheduler.close()
        else:
            self._closing = asyncio.create_task(self._close_after(lingering))

    async def _close_after(self, lingering: asyncio.Task[None]) -> None:
        await asyncio.wait({lingering})
        await self._scheduler.close()
