"""SAQ, whatever it stores its jobs in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from saq import CronJob, Worker
from saq.queue.base import Queue

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Job, Plan, Settings, first_job, record

KEEP_NOTHING = -1


class Adapter(base.Adapter):
    """One function, and a cron job for each schedule."""

    eager: int | float = 1
    """Seconds from one look for jobs that have fallen due to the next, at the least."""

    @abstractmethod
    def connected(self) -> AbstractAsyncContextManager[Queue]:
        """Connect the queue."""

    @abstractmethod
    def asking(self, queue: Queue) -> Client:
        """Return the client of a queue that is connected."""

    async def prepare(self) -> None:
        async with self.connected():
            pass

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with self.connected() as queue:
            yield self.asking(queue)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        """Run a worker that listens, and looks for jobs that have fallen due as often as it can."""
        async with self.connected() as queue:
            timers: Any = {"schedule": self.eager} if settings.eager else None
            worker: Worker[Any] = Worker(
                queue,
                [note],
                concurrency=settings.concurrency,
                cron_jobs=_cron_jobs(settings.plan) if settings.plan else None,
                timers=timers,
            )
            ready()
            await worker.start()


class Client(base.Client):
    """Enqueues through the queue's own pool; there is no bulk call."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    async def put(self, job: Job) -> None:
        await self._queue.enqueue("note", number=job.number, due=job.due, ttl=KEEP_NOTHING)

    async def put_at(self, job: Job) -> None:
        await self._queue.enqueue("note", number=job.number, due=job.due, ttl=KEEP_NOTHING, scheduled=job.due)

    async def fill(self, count: int) -> None:
        await self.put_at(first_job())
        await self.copy(count - 1)

    @abstractmethod
    async def copy(self, count: int) -> None:
        """Store so many jobs like the one that is stored, one a second behind it."""

    async def schedules(self, plan: Plan) -> list[float]:
        return base.cron_starts(plan)


async def note(ctx: dict[str, Any], *, number: int, due: float) -> None:
    """Be the handler of one-off jobs."""
    del ctx
    record(number, due)


def _cron_jobs(plan: Plan) -> list[CronJob[Any]]:
    return [
        CronJob(_tick(number), f"* * * * * {seconds}", ttl=KEEP_NOTHING)
        for number, seconds in enumerate(base.cron_seconds(plan))
    ]


def _tick(number: int) -> Callable[..., Any]:
    """Return a handler of its own for a schedule: SAQ tells its cron jobs apart by the name of the function."""

    async def tick(ctx: dict[str, Any]) -> None:
        record(number, ctx["job"].scheduled)

    tick.__qualname__ = f"tick-{number}"
    return tick
