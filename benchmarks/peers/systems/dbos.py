"""DBOS on PostgreSQL."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import CALLERS, Job, Plan, Settings, first_job, record

_APPLICATION = "benchmark"
_QUEUE = "jobs"
_NOTE: EnqueueOptions = {"workflow_name": "note", "queue_name": _QUEUE}
_POOL = 20
# The rows that `enqueue` writes. All but the key and the due time is taken from one that it wrote.
_FILL = """
INSERT INTO dbos.workflow_status
SELECT copy.*
FROM dbos.workflow_status AS written, generate_series(1, {count}) AS n, jsonb_populate_record(
    written,
    jsonb_build_object(
        'workflow_uuid', gen_random_uuid(),
        'delay_until_epoch_ms', (extract(epoch FROM now())::bigint + 86400 + n) * 1000
    )
) AS copy
WHERE written.workflow_uuid = (SELECT min(workflow_uuid) FROM dbos.workflow_status WHERE status = 'DELAYED')
"""


class Adapter(base.Adapter):
    """Two workflows, and one queue for both."""

    async def prepare(self) -> None:
        self._launch()
        DBOS.destroy()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Connect a client, with a thread for each caller: it waits for the database in threads."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CALLERS))
        engine = sa.create_engine(_driver(self.url), pool_size=_POOL, max_overflow=0)
        client = DBOSClient(system_database_engine=engine, application_name=_APPLICATION)
        try:
            yield Client(client, engine)
        finally:
            client.destroy()

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        """Launch it with the queue set up before, because it claims at once."""
        async with self.client() as client:
            await client.set_up(settings)
        ready()
        self._launch()
        await asyncio.get_running_loop().create_future()

    def _launch(self) -> None:
        config: DBOSConfig = {
            "name": _APPLICATION,
            "system_database_url": self.url,
            "sys_db_pool_size": _POOL,
            "application_version": "1",
            "executor_id": uuid.uuid4().hex,
            "log_level": "ERROR",
        }
        DBOS(config=config)
        DBOS.workflow(name="note")(note)
        DBOS.workflow(name="tick")(tick)
        DBOS.launch()


class Client(base.Client):
    """Enqueues workflows."""

    def __init__(self, client: DBOSClient, engine: sa.Engine) -> None:
        self._client = client
        self._engine = engine

    async def set_up(self, settings: Settings) -> None:
        await self._client.register_queue_async(
            _QUEUE,
            worker_concurrency=settings.concurrency,
            polling_interval_sec=0.01 if settings.eager else 1.0,
        )

    async def put(self, job: Job) -> None:
        await self._client.enqueue_async(_NOTE, *job)

    async def put_many(self, jobs: Sequence[Job]) -> None:
        await asyncio.to_thread(self._put_many, jobs)

    async def put_at(self, job: Job) -> None:
        await self._client.enqueue_async({**_NOTE, "delay_seconds": job.due - time.time()}, *job)

    async def fill(self, count: int) -> None:
        """Enqueue one workflow by its own call and store the others like it."""
        await self.put_at(first_job())
        with self._engine.begin() as connection:
            connection.execute(sa.text(_FILL.format(count=count - 1)))

    async def schedules(self, plan: Plan) -> list[float]:
        # Here, since the memory of workers is measured, and they need none of it.
        from benchmarks.peers.systems import base

        await self._client.apply_schedules_async(
            [
                {
                    "schedule_name": str(number),
                    "workflow_name": "tick",
                    "schedule": f"{seconds} * * * * *",
                    "context": number,
                    "queue_name": _QUEUE,
                }
                for number, seconds in enumerate(base.cron_seconds(plan))
            ]
        )
        return base.cron_starts(plan)

    def _put_many(self, jobs: Sequence[Job]) -> None:
        with self._engine.begin() as connection:
            for job in jobs:
                self._client.enqueue_in_transaction(connection, _NOTE, *job)


async def note(number: int, due: float) -> None:
    """Be the handler of one-off jobs."""
    record(number, due)


async def tick(scheduled: datetime, number: int) -> None:
    """Be the handler of schedules."""
    record(number, scheduled.timestamp())


def _driver(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")
