"""Duetime, with its default settings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Job, Plan, Settings, at_once, record
from duetime import Scheduler, current_job
from duetime.scheduler.task import AsyncTask

_BATCH = 5_000
_DAY = 86_400


class Adapter(base.Adapter):
    """A scheduler with the task that everyone runs."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        logging.getLogger("duetime").setLevel(logging.ERROR)
        self._scheduler = Scheduler(url)

        @self._scheduler.task(name="peers.note")
        async def note(number: int, due: float) -> None:
            record(number, due)

        @self._scheduler.task(name="peers.tick")
        async def tick(number: int) -> None:
            record(number, current_job().due_at.timestamp())

        self._note: AsyncTask[[int, float], None] = note
        self._tick: AsyncTask[[int], None] = tick

    async def prepare(self) -> None:
        async with self._scheduler:
            pass

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with self._scheduler:
            yield Client(self._scheduler, self._note, self._tick)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        async with self._scheduler:
            ready()
            async with self._scheduler.worker(concurrency=settings.concurrency):
                await asyncio.get_running_loop().create_future()


class Client(base.Client):
    """The scheduler's verbs."""

    def __init__(
        self, scheduler: Scheduler, note: AsyncTask[[int, float], None], tick: AsyncTask[[int], None]
    ) -> None:
        self._scheduler = scheduler
        self._note = note
        self._tick = tick

    async def put(self, job: Job) -> None:
        await self._note.enqueue(*job)

    async def put_each(self, jobs: Iterable[Job]) -> None:
        """Call `sync.enqueue` in a thread: on SQLite that is what a program would do whose calls may block."""
        if self._scheduler.url.startswith("sqlite"):
            await asyncio.to_thread(self._put_each, jobs)
        else:
            await super().put_each(jobs)

    def _put_each(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._note.sync.enqueue(*job)

    async def put_many(self, jobs: Sequence[Job]) -> None:
        await self._scheduler.enqueue_many([self._note.call(*job) for job in jobs])

    async def put_at(self, job: Job) -> None:
        await self._note.options(at=_moment(job.due)).enqueue(*job)

    async def put_many_at(self, jobs: Sequence[Job]) -> None:
        await self._scheduler.enqueue_many(
            [self._note.options(at=_moment(job.due)).call(*job) for job in jobs]
        )

    async def fill(self, count: int) -> None:
        first = datetime.now(UTC).timestamp() + _DAY
        for start in range(0, count, _BATCH):
            await self.put_many_at([Job(n, first + n) for n in range(start, min(count, start + _BATCH))])

    async def schedules(self, plan: Plan) -> list[float]:
        # Here, since the memory of workers is measured, and they get their triggers from the database.
        from duetime import every

        async def put(job: Job) -> None:
            trigger = every(timedelta(seconds=plan.period), start=_moment(job.due))
            await self._scheduler.schedules.put(
                f"peers-{job.number:05}", trigger, self._tick, kwargs={"number": job.number}
            )

        starts = plan.starts()
        await at_once(put, [Job(n, start) for n, start in enumerate(starts)])
        return starts


def _moment(due: float) -> datetime:
    return datetime.fromtimestamp(due, UTC)
