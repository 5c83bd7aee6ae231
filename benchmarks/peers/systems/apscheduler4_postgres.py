"""APScheduler 4 on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from apscheduler import AsyncScheduler, current_job
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.eventbrokers.asyncpg import AsyncpgEventBroker
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Job, Plan, Settings, at_once, first_job, record

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


class Adapter(base.Adapter):
    """Two tasks without a limit of their own; the default is one running job for each."""

    async def prepare(self) -> None:
        async with self._scheduler() as (scheduler, _):
            await _configure(scheduler)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with self._scheduler() as (scheduler, engine):
            yield Client(scheduler, engine)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        async with self._scheduler(settings.concurrency) as (scheduler, _):
            await _configure(scheduler)
            ready()
            await scheduler.run_until_stopped()

    @asynccontextmanager
    async def _scheduler(self, concurrency: int = 100) -> AsyncIterator[tuple[AsyncScheduler, AsyncEngine]]:
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


class Client(base.Client):
    """Adds jobs and schedules; there is no bulk call."""

    def __init__(self, scheduler: AsyncScheduler, engine: AsyncEngine) -> None:
        self._scheduler = scheduler
        self._engine = engine

    async def put(self, job: Job) -> None:
        await self._scheduler.add_job("note", args=job)

    async def put_at(self, job: Job) -> None:
        # Here, since the memory of workers is measured, and they need none of it.
        from apscheduler.triggers.date import DateTrigger

        trigger = DateTrigger(datetime.fromtimestamp(job.due, UTC))
        await self._scheduler.add_schedule("note", trigger, args=job)

    async def fill(self, count: int) -> None:
        from sqlalchemy import text

        await self.put_at(first_job())
        async with self._engine.begin() as connection:
            await connection.execute(text(_FILL.format(count=count - 1)))

    async def schedules(self, plan: Plan) -> list[float]:
        from apscheduler.triggers.interval import IntervalTrigger

        async def add(job: Job) -> None:
            start = datetime.fromtimestamp(job.due, UTC)
            trigger = IntervalTrigger(seconds=plan.period, start_time=start)
            await self._scheduler.add_schedule("tick", trigger, args=[job.number])

        starts = plan.starts()
        await at_once(add, [Job(number, start) for number, start in enumerate(starts)])
        return starts


async def note(number: int, due: float) -> None:
    """Be the handler of one-off jobs."""
    record(number, due)


async def tick(number: int) -> None:
    """Be the handler of schedules."""
    due = current_job.get().scheduled_fire_time
    record(number, due.timestamp() if due else 0)


async def _configure(scheduler: AsyncScheduler) -> None:
    for name, handler in (("note", note), ("tick", tick)):
        await scheduler.configure_task(name, func=handler, max_running_jobs=None)
