"""APScheduler 3 on SQLite: jobs are added in the process that runs them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Job, Plan, Settings, record

_BATCH = 10_000
_DEFAULTS = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}


async def note(number: int, due: float) -> None:
    """Run a job; it is stored by its name."""
    record(number, due)


class Adapter(base.Adapter):
    """A scheduler that is paused as long as it is only a client."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        engine = sqlalchemy.create_engine(url)
        sqlalchemy.event.listen(engine, "connect", _durable)
        self._store = SQLAlchemyJobStore(engine=engine)
        self._scheduler = AsyncIOScheduler(
            jobstores={"default": self._store}, job_defaults=_DEFAULTS, timezone=UTC
        )

    async def prepare(self) -> None:
        async with self.client():
            pass

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Use the scheduler that works in this process, or one that does not work."""
        if self._scheduler.running:
            yield Client(self._scheduler, self._store)
            return
        self._scheduler.start(paused=True)
        try:
            yield Client(self._scheduler, self._store)
        finally:
            self._scheduler.shutdown(wait=False)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        ready()
        self._scheduler.start()
        await asyncio.get_running_loop().create_future()


class Client(base.Client):
    """Calls that block, and so are made one after the other."""

    def __init__(self, scheduler: Any, store: Any) -> None:
        self._scheduler = scheduler
        self._store = store

    async def put(self, job: Job) -> None:
        self._scheduler.add_job(note, args=job)

    async def put_at(self, job: Job) -> None:
        self._scheduler.add_job(note, "date", run_date=_moment(job.due), args=job)

    async def fill(self, count: int) -> None:
        first = datetime.now(UTC) + timedelta(days=1)
        for start in range(0, count, _BATCH):
            numbers = range(start, min(count, start + _BATCH))
            rows = [self._row(n, first + timedelta(seconds=n)) for n in numbers]
            with self._store.engine.begin() as connection:
                connection.execute(self._store.jobs_t.insert(), rows)

    async def schedules(self, plan: Plan) -> list[float]:
        """Add a job with an interval for each; it is not told its due time."""
        # Here, since the memory of workers is measured, and they need none of it.
        from apscheduler.triggers.interval import IntervalTrigger

        starts = plan.starts()
        for n, start in enumerate(starts):
            trigger = IntervalTrigger(seconds=plan.period, start_date=_moment(start), timezone=UTC)
            self._scheduler.add_job(note, trigger, args=(n, 0.0))
            # The worker is in this very event loop.
            await asyncio.sleep(0)
        return starts

    def _row(self, number: int, due: datetime) -> dict[str, Any]:
        import pickle

        from apscheduler.job import Job as StoredJob
        from apscheduler.triggers.date import DateTrigger

        job = StoredJob(
            self._scheduler,
            id=f"future-{number}",
            func=note,
            trigger=DateTrigger(due),
            executor="default",
            args=(number, due.timestamp()),
            kwargs={},
            name="note",
            next_run_time=due,
            **_DEFAULTS,
        )
        state = pickle.dumps(job.__getstate__(), self._store.pickle_protocol)
        return {"id": job.id, "next_run_time": due.timestamp(), "job_state": state}


def _durable(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _moment(due: float) -> datetime:
    return datetime.fromtimestamp(due, UTC)
