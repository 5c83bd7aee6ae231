"""streaQ on Redis."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from streaq import Worker

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Job, Plan, Settings, record

_BATCH = 5_000
_DAY = 86_400


class Adapter(base.Adapter):
    """A worker, which also enqueues."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        logging.getLogger("streaq").setLevel(logging.ERROR)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        worker = Worker(self.url)
        async with worker:
            yield Client(worker, _declared(worker))

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:

        @asynccontextmanager
        async def lifespan() -> AsyncIterator[None]:
            ready()
            yield

        worker: Worker[None] = Worker(self.url, concurrency=settings.concurrency, lifespan=lifespan)
        _declared(worker)
        for number, seconds in enumerate(base.cron_seconds(settings.plan) if settings.plan else ()):
            worker.cron(f"{seconds} * * * * * *", name=f"tick-{number}", silent=True, ttl=0)(_tick(number))
        await worker.run_async()


class Client(base.Client):
    """Enqueues one by one or in a pipeline."""

    def __init__(self, worker: Worker[Any], task: Any) -> None:
        self._worker = worker
        self._task = task

    async def put(self, job: Job) -> None:
        await self._task.enqueue(*job)

    async def put_many(self, jobs: Sequence[Job]) -> None:
        await self._worker.enqueue_many([self._task.enqueue(*job) for job in jobs])

    async def put_at(self, job: Job) -> None:
        """Enqueue one job for its due time, which is kept in milliseconds."""
        await self._later(job)

    async def put_many_at(self, jobs: Sequence[Job]) -> None:
        await self._worker.enqueue_many([self._later(job) for job in jobs])

    async def fill(self, count: int) -> None:
        first = time.time() + _DAY
        for start in range(0, count, _BATCH):
            await self.put_many_at([Job(n, first + n) for n in range(start, min(count, start + _BATCH))])

    async def schedules(self, plan: Plan) -> list[float]:
        return base.cron_starts(plan)

    def _later(self, job: Job) -> Any:
        return self._task.enqueue(*job).start(schedule=datetime.fromtimestamp(job.due, UTC))


def _declared(worker: Worker[Any]) -> Any:
    @worker.task(name="note", silent=True, ttl=0)
    async def note(number: int, due: float) -> None:
        record(number, due)

    return note


def _tick(number: int) -> Callable[..., Any]:
    async def tick() -> None:
        # It is not told when it was due.
        record(number, 0.0)

    return tick
