"""arq on Redis."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.cron import CronJob, cron
from arq.worker import Worker, func

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Command, Job, Plan, Settings, first_job, piped, record

_QUEUE = "arq:queue"
_JOB = "arq:job:"
_DAY = 86_400_000


class Adapter(base.Adapter):
    """One function, and a cron job for each schedule."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        logging.getLogger("arq").setLevel(logging.ERROR)
        self._settings = RedisSettings.from_dsn(url)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with await create_pool(self._settings) as pool:
            yield Client(self.url, pool)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:

        async def startup(ctx: dict[Any, Any]) -> None:
            del ctx
            ready()

        polling = {"poll_delay": 0.01} if settings.eager else {}
        worker = Worker(
            [func(note, keep_result=0)],
            redis_settings=self._settings,
            cron_jobs=_cron_jobs(settings.plan) if settings.plan else None,
            on_startup=startup,
            max_jobs=settings.concurrency,
            handle_signals=False,
            timezone=UTC,
            **polling,
        )
        await worker.async_run()


class Client(base.Client):
    """Enqueues through a pool; there is no bulk call."""

    def __init__(self, url: str, pool: Any) -> None:
        self._url = url
        self._pool = pool

    async def put(self, job: Job) -> None:
        await self._pool.enqueue_job("note", *job)

    async def put_at(self, job: Job) -> None:
        """Enqueue one job that is deferred until its due time, which is kept in milliseconds."""
        await self._pool.enqueue_job("note", *job, _defer_until=datetime.fromtimestamp(job.due, UTC))

    async def fill(self, count: int) -> None:
        await self.put_at(first_job())
        (name,) = await self._pool.zrange(_QUEUE, -1, -1)
        piped(self._url, _like(await self._pool.get(_JOB + name.decode()), count - 1))

    async def schedules(self, plan: Plan) -> list[float]:
        return base.cron_starts(plan)


def _like(stored: bytes, count: int) -> Iterator[Command]:
    first = int(time.time() * 1000) + _DAY
    for n in range(count):
        # It lets a job expire a day after its due time.
        yield "PSETEX", f"{_JOB}later{n}", 2 * _DAY + n * 1000, stored
        yield "ZADD", _QUEUE, first + n * 1000, f"later{n}"


async def note(ctx: dict[str, Any], number: int, due: float) -> None:
    """Be the handler of one-off jobs."""
    del ctx
    record(number, due)


def _cron_jobs(plan: Plan) -> list[CronJob]:
    return [
        cron(_tick(number), name=f"tick-{number}", second=set(map(int, seconds.split(","))), microsecond=0)
        for number, seconds in enumerate(base.cron_seconds(plan))
    ]


def _tick(number: int) -> Callable[..., Any]:
    async def tick(ctx: dict[str, Any]) -> None:
        record(number, ctx["score"] / 1000)

    return tick
