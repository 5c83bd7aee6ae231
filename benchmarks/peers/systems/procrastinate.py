"""Procrastinate on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import procrastinate

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Job, Plan, Settings, first_job, record

_POOL = 20
# The rows that `defer` and its triggers write, without two million calls of the triggers: a job, and the
# events `deferred` and `scheduled`. All but the key and the due time is taken from one that `defer` wrote.
_FILL = """
SET session_replication_role = replica;
CREATE TEMP TABLE filled AS
    SELECT nextval('procrastinate_jobs_id_seq') AS id, now() + interval '1 day' + i * interval '1 s' AS due
    FROM generate_series(1, {count}) AS i;
INSERT INTO procrastinate_jobs (id, queue_name, task_name, priority, args, scheduled_at)
    SELECT filled.id, queue_name, task_name, priority, args, due
    FROM filled, (SELECT * FROM procrastinate_jobs WHERE scheduled_at IS NOT NULL LIMIT 1) AS written
    ORDER BY filled.id;
INSERT INTO procrastinate_events (job_id, type, at)
    SELECT id, type::procrastinate_job_event_type, at
    FROM filled, LATERAL (VALUES ('scheduled', due), ('deferred', now())) AS event (type, at)
    ORDER BY id;
DROP TABLE filled;
RESET session_replication_role;
"""


class Adapter(base.Adapter):
    """Two tasks of one app."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._app = procrastinate.App(
            connector=procrastinate.PsycopgConnector(conninfo=url, min_size=_POOL, max_size=_POOL)
        )

        @self._app.task(name="note")
        async def note(number: int, due: float) -> None:
            record(number, due)

        @self._app.task(name="tick")
        async def tick(number: int, timestamp: int) -> None:
            record(number, timestamp)

        self._note = note
        self._tick = tick

    async def prepare(self) -> None:
        async with self._app.open_async():
            await self._app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with self._app.open_async():
            yield Client(self.url, self._note)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        for number, seconds in enumerate(base.cron_seconds(settings.plan) if settings.plan else ()):
            rule = f"* * * * * {seconds}"
            self._app.periodic(cron=rule, periodic_id=str(number), task_kwargs={"number": number})(self._tick)
        async with self._app.open_async():
            ready()
            await self._app.run_worker_async(
                concurrency=settings.concurrency,
                fetch_job_polling_interval=0.01 if settings.eager else 5.0,
                delete_jobs="successful",
                install_signal_handlers=False,
            )


class Client(base.Client):
    """Defers jobs."""

    def __init__(self, url: str, task: Any) -> None:
        self._url = url
        self._task = task

    async def put(self, job: Job) -> None:
        await self._task.defer_async(number=job.number, due=job.due)

    async def put_many(self, jobs: Sequence[Job]) -> None:
        await self._task.batch_defer_async(*(job._asdict() for job in jobs))

    async def put_at(self, job: Job) -> None:
        at = datetime.fromtimestamp(job.due, UTC)
        await self._task.configure(schedule_at=at).defer_async(number=job.number, due=job.due)

    async def fill(self, count: int) -> None:
        # Here, since the memory of workers is measured, and they need none of it.
        import psycopg

        await self.put_at(first_job())
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            await connection.execute(_FILL.format(count=count - 1))

    async def schedules(self, plan: Plan) -> list[float]:
        return base.cron_starts(plan)
