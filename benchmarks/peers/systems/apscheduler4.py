"""APScheduler 4: on SQLite jobs are added in the process that runs them, since no event crosses processes there."""

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
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Job, Plan, Settings, at_once, first_job, record

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


_POOL = 20
# The rows that `add_schedule` writes. All but the key and the due time is taken from one that it wrote.
_FILL = """
INSERT INTO schedules (
    id, task_id, trigger, args, kwargs, paused, "coalesce", misfire_grace_time, max_jitter, job_executor,
    job_result_expiration_time, metadata, last_fire_time, next_fire_time, acquired_by, acquired_until
)
SELECT
    gen_random_uuid()::text, task_id, trigger, args, kwargs, paused, "coalesce", misfire_grace_time,
    max_jitter, job_executor, job_result_expiration_time, metadata, last_fire_time,
    now() + interval '1 day' + i * interval '1 s', acquired_by, acquired_until
FROM (SELECT * FROM schedules WHERE next_fire_time > now() LIMIT 1) AS written,
    generate_series(1, {count}) AS i
"""


class OnPostgres(base.Adapter):
    """Two tasks without a limit of their own; the default is one running job for each."""

    async def prepare(self) -> None:
        async with self._scheduler() as (scheduler, _):
            await _configure(scheduler)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[PostgresClient]:
        async with self._scheduler() as (scheduler, engine):
            yield PostgresClient(scheduler, engine)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        async with self._scheduler(settings.concurrency) as (scheduler, _):
            await _configure(scheduler)
            ready()
            await scheduler.run_until_stopped()

    @asynccontextmanager
    async def _scheduler(self, concurrency: int = 100) -> AsyncIterator[tuple[AsyncScheduler, AsyncEngine]]:
        from apscheduler.eventbrokers.asyncpg import AsyncpgEventBroker

        url = self.url.replace("postgresql://", "postgresql+asyncpg://")
        engine = create_async_engine(url, pool_size=_POOL, max_overflow=0)
        try:
            async with AsyncScheduler(
                SQLAlchemyDataStore(engine),
                AsyncpgEventBroker.from_async_sqla_engine(engine),
                max_concurrent_jobs=concurrency,
            ) as scheduler:
                yield scheduler, engine
        finally:
            await engine.dispose()


class PostgresClient(base.Client):
    """Adds jobs and schedules; there is no bulk call."""

    def __init__(self, scheduler: AsyncScheduler, engine: AsyncEngine) -> None:
        self._scheduler = scheduler
        self._engine = engine

    async def put(self, job: Job) -> None:
        await self._scheduler.add_job("note", args=job)

    async def put_at(self, job: Job) -> None:
        # Here, since the memory of workers is measured, and they need none of it.
        from apscheduler.triggers.date import DateTrigger

        trigger = DateTrigger(_moment(job.due))
        await self._scheduler.add_schedule("note", trigger, args=job)

    async def fill(self, count: int) -> None:
        from sqlalchemy import text

        await self.put_at(first_job())
        async with self._engine.begin() as connection:
            await connection.execute(text(_FILL.format(count=count - 1)))

    async def schedules(self, plan: Plan) -> list[float]:
        from apscheduler.triggers.interval import IntervalTrigger

        async def add(job: Job) -> None:
            start = _moment(job.due)
            trigger = IntervalTrigger(seconds=plan.period, start_time=start)
            await self._scheduler.add_schedule("tick", trigger, args=[job.number])

        starts = plan.starts()
        await at_once(add, [Job(number, start) for number, start in enumerate(starts)])
        return starts


async def _configure(scheduler: AsyncScheduler) -> None:
    for name, handler in (("note", note), ("tick", tick)):
        await scheduler.configure_task(name, func=handler, max_running_jobs=None)
