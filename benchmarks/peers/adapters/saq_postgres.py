"""SAQ on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from saq import CronJob, Worker
from saq.queue.postgres import PostgresQueue

from benchmarks.peers.adapters import base, crons
from benchmarks.peers.adapters.base import Job, Plan, Settings, first_job, record

_POOL = 20
_KEEP_NOTHING = -1
# The rows that `enqueue` writes. All but the key and the due time is taken from one that it wrote.
_FILL = """
INSERT INTO saq_jobs (key, job, queue, status, priority, group_key, scheduled)
SELECT
    copy.key, convert_to(replace(convert_from(job, 'UTF8'), written.key, copy.key), 'UTF8'),
    queue, status, priority, group_key, extract(epoch FROM now())::bigint + 86400 + copy.n
FROM (SELECT * FROM saq_jobs WHERE scheduled > extract(epoch FROM now()) + 3600 LIMIT 1) AS written,
    generate_series(1, {count}) AS n, LATERAL (SELECT n, gen_random_uuid()::text AS key) AS copy
"""


class Adapter(base.Adapter):
    """One function, and a cron job for each schedule."""

    async def prepare(self) -> None:
        """Make the tables."""
        async with self._connected():
            pass

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Connect the queue."""
        async with self._connected() as queue:
            yield Client(queue)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        """Run a worker that listens, and looks for jobs that have fallen due ten times a second."""
        async with self._connected() as queue:
            worker: Worker[Any] = Worker(
                queue,
                [note],
                concurrency=settings.concurrency,
                cron_jobs=_cron_jobs(settings.plan) if settings.plan else None,
                timers={"schedule": 0.1} if settings.eager else None,
            )
            ready()
            await worker.start()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[PostgresQueue]:
        queue = PostgresQueue.from_url(self.url, min_size=_POOL, max_size=_POOL)
        await queue.connect()
        try:
            yield queue
        finally:
            await queue.disconnect()


class Client(base.Client):
    """Enqueues through the queue's own pool; there is no bulk call."""

    def __init__(self, queue: PostgresQueue) -> None:
        self._queue = queue

    async def put(self, job: Job) -> None:
        """Enqueue one job."""
        await self._queue.enqueue("note", number=job.number, due=job.due, ttl=_KEEP_NOTHING)

    async def put_at(self, job: Job) -> None:
        """Enqueue one job for its due time, which the table rounds to a full second."""
        at: Any = job.due
        await self._queue.enqueue("note", number=job.number, due=job.due, ttl=_KEEP_NOTHING, scheduled=at)

    async def fill(self, count: int) -> None:
        """Enqueue one job by its own call and store the others like it."""
        await self.put_at(first_job())
        async with self._queue.pool.connection() as connection:
            await connection.execute(_FILL.format(count=count - 1))

    async def schedules(self, plan: Plan) -> list[float]:
        """Leave them to the worker, which declares them."""
        return crons.starts(plan)


async def note(ctx: dict[str, Any], *, number: int, due: float) -> None:
    """Be the handler of one-off jobs."""
    del ctx
    record(number, due)


def _cron_jobs(plan: Plan) -> list[CronJob[Any]]:
    return [
        CronJob(_tick(number), f"* * * * * {seconds}", ttl=_KEEP_NOTHING)
        for number, seconds in enumerate(crons.seconds(plan))
    ]


def _tick(number: int) -> Callable[..., Any]:
    """Return a handler of its own for a schedule: SAQ tells its cron jobs apart by the name of the function."""

    async def tick(ctx: dict[str, Any]) -> None:
        record(number, ctx["job"].scheduled)

    tick.__qualname__ = f"tick-{number}"
    return tick
