"""SAQ, whatever it stores its jobs in."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from saq import CronJob, Worker
from saq.queue.base import Queue

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Command, Job, Plan, Settings, first_job, piped, record

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


_POOL = 20
# The rows that `enqueue` writes. All but the key and the due time is taken from one that it wrote.
_FILL = """
INSERT INTO saq_jobs (key, job, queue, status, priority, group_key, scheduled)
SELECT
    copy.key, convert_to(replace(convert_from(job, 'UTF8'), written.key, copy.key), 'UTF8'),
    queue, status, priority, group_key, extract(epoch FROM now())::bigint + 86400 + copy.n
FROM (SELECT * FROM saq_jobs WHERE scheduled > extract(epoch FROM now()) + 3600 LIMIT 1) AS written,
    generate_series(1, {count}) AS n, LATERAL (SELECT n, gen_random_uuid()::text AS key) AS copy
"""


class OnPostgres(Adapter):
    """A queue on a pool of connections; it looks for jobs that have fallen due ten times a second."""

    eager = 0.1

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Queue]:
        """Connect the queue."""
        from saq.queue.postgres import PostgresQueue

        queue = PostgresQueue.from_url(self.url, min_size=_POOL, max_size=_POOL)
        await queue.connect()
        try:
            yield queue
        finally:
            await queue.disconnect()

    def asking(self, queue: Any) -> PostgresClient:
        """Return the client of a queue that is connected."""
        return PostgresClient(queue)


class PostgresClient(Client):
    """Enqueues for due times that the table rounds to full seconds."""

    async def copy(self, count: int) -> None:
        """Store rows like the one that is there."""
        async with self._queue.pool.connection() as connection:
            await connection.execute(_FILL.format(count=count))


_DAY = 86_400


class OnRedis(Adapter):
    """A queue with the defaults: no timer can be shorter than a second."""

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Queue]:
        """Connect the queue."""
        from saq.queue.redis import RedisQueue

        queue = RedisQueue.from_url(self.url)
        await queue.connect()
        try:
            yield queue
        finally:
            await queue.disconnect()

    def asking(self, queue: Any) -> RedisClient:
        """Return the client of a queue that is connected."""
        return RedisClient(self.url, queue)


class RedisClient(Client):
    """Enqueues one by one."""

    def __init__(self, url: str, queue: Any) -> None:
        super().__init__(queue)
        self._url = url

    async def copy(self, count: int) -> None:
        """Store what the script of `enqueue` stores."""
        ((name, _),) = await self._queue.redis.zrange("saq:default:incomplete", -1, -1, withscores=True)
        piped(self._url, _like(name, await self._queue.redis.get(name), count))


def _like(name: bytes, stored: bytes, count: int) -> Iterator[Command]:
    first = int(time.time()) + _DAY
    key = name.rpartition(b":")[2]
    for n in range(count):
        own = f"later{n}".encode()
        copy = name.replace(key, own)
        yield "SET", copy, stored.replace(key, own)
        yield "ZADD", "saq:default:incomplete", first + n, copy
