"""RQ on Redis."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from redis import Redis
from rq import Queue, SimpleWorker

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Command, Job, Plan, Settings, Unsupported, first_job, piped, record

_DAY = 86_400
_KEEP_NOTHING = 0


class Adapter(base.Adapter):
    """One queue."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._redis = Redis.from_url(url)
        self._queue = Queue(connection=self._redis)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        yield Client(self.url, self._redis, self._queue)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        """Run a worker that runs one job after the other, with the process of its scheduler; it ends by SIGTERM."""
        logging.disable(logging.WARNING)
        worker = SimpleWorker([self._queue], connection=self._redis)
        ready()
        worker.work(logging_level="ERROR", with_scheduler=True)


class Client(base.Client):
    """Calls that block, and so are made one after the other."""

    def __init__(self, url: str, redis: Any, queue: Queue) -> None:
        self._url = url
        self._redis = redis
        self._queue = queue

    async def put(self, job: Job) -> None:
        self._queue.enqueue(note, args=job, result_ttl=_KEEP_NOTHING)

    async def put_many(self, jobs: Sequence[Job]) -> None:
        self._queue.enqueue_many(
            [Queue.prepare_data(note, args=tuple(job), result_ttl=_KEEP_NOTHING) for job in jobs]
        )

    async def put_at(self, job: Job) -> None:
        self._queue.enqueue_at(datetime.fromtimestamp(job.due, UTC), note, args=job, result_ttl=_KEEP_NOTHING)

    async def fill(self, count: int) -> None:
        await self.put_at(first_job())
        (name,) = self._redis.zrange("rq:scheduled:default", -1, -1)
        piped(self._url, _like(self._redis.hgetall(b"rq:job:" + name), count - 1))

    async def schedules(self, plan: Plan) -> list[float]:
        raise Unsupported("no schedules at seconds of their own")


def _like(stored: dict[bytes, bytes], count: int) -> Iterator[Command]:
    first = int(time.time()) + _DAY
    fields = [part for field in stored.items() for part in field]
    for n in range(count):
        yield "HSET", f"rq:job:later{n}", *fields
        yield "ZADD", "rq:scheduled:default", first + n, f"later{n}"


def note(number: int, due: float) -> None:
    """Be the handler of one-off jobs."""
    record(number, due)
