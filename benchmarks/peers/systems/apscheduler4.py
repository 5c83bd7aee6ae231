"""APScheduler 4 on SQLite: no event crosses processes there, so jobs are added in the process that runs them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy
from apscheduler import AsyncScheduler, current_job
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Job, Plan, Settings, record

_BATCH = 5_000


async def note(number: int, due: float) -> None:
    """Run a job; it is stored by its name."""
    record(number, due)


async def tick(number: int) -> None:
    """Run an occurrence of a schedule; it learns from its job when it was due."""
    due = current_job.get().scheduled_fire_time
    record(number, due.timestamp())


class Adapter(base.Adapter):
    """A scheduler that is not started as long as it is only a client."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        engine = create_async_engine(f"sqlite+aiosqlite:///{self.path}")
        sqlalchemy.event.listen(engine.sync_engine, "connect", _durable)
        self._store = SQLAlchemyDataStore(engine)
        self._running: Client | None = None

    async def prepare(self) -> None:
        async with self.client():
            pass

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Use the scheduler that works in this process, or one that does not work."""
        if self._running is not None:
            yield self._running
            return
        async with AsyncScheduler(self._store) as scheduler:
            yield await _configured(scheduler, self._store)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        async with AsyncScheduler(self._store, max_concurrent_jobs=settings.concurrency) as scheduler:
            self._running = await _configured(scheduler, self._store)
            ready()
            await scheduler.run_until_stopped()


class Client(base.Client):
    """Calls made one after the other: several at once end in a time-out of SQLAlchemy's pool."""

    def __init__(self, scheduler: Any, store: Any) -> None:
        self._scheduler = scheduler
        self._store = store
        self._turn = asyncio.Lock()

    async def put(self, job: Job) -> None:
        async with self._turn:
            await self._scheduler.add_job("note", args=job)

    async def put_at(self, job: Job) -> None:
        # Here, since the memory of workers is measured, and they need none of it.
        from apscheduler.triggers.date import DateTrigger

        async with self._turn:
            await self._scheduler.add_schedule("note", DateTrigger(_moment(job.due)), args=job)

    async def fill(self, count: int) -> None:
        first = datetime.now(UTC) + timedelta(days=1)
        for start in range(0, count, _BATCH):
            numbers = range(start, min(count, start + _BATCH))
            rows = [self._row(n, first + timedelta(seconds=n)) for n in numbers]
            # No public name reaches the table.
            async with self._store._begin_transaction() as connection:  # noqa: SLF001
                await self._store._execute(connection, self._store._t_schedules.insert(), rows)  # noqa: SLF001

    async def schedules(self, plan: Plan) -> list[float]:
        from apscheduler.triggers.interval import IntervalTrigger

        starts = plan.starts()
        for n, start in enumerate(starts):
            trigger = IntervalTrigger(seconds=plan.period, start_time=_moment(start))
            await self._scheduler.add_schedule("tick", trigger, args=(n,))
        return starts

    def _row(self, number: int, due: datetime) -> dict[str, Any]:
        from apscheduler import Schedule
        from apscheduler.triggers.date import DateTrigger

        trigger = DateTrigger(due)
        schedule = Schedule(
            id=f"future-{number}",
            task_id="note",
            trigger=trigger,
            args=(number, due.timestamp()),
            kwargs={},
            job_executor="async",
            next_fire_time=trigger.next(),
        )
        return self._store._convert_outgoing_fire_times(  # noqa: SLF001
            schedule.marshal(self._store.serializer)
        )


async def _configured(scheduler: Any, store: Any) -> Client:
    for name, function in (("note", note), ("tick", tick)):
        await scheduler.configure_task(
            name, func=function, job_executor="async", max_running_jobs=None, misfire_grace_time=None
        )
    return Client(scheduler, store)


def _durable(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _moment(due: float) -> datetime:
    return datetime.fromtimestamp(due, UTC)
