"""PgQueuer on PostgreSQL."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job as Picked, Schedule

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Job, Plan, Settings, first_job, record

_POOL = 20
_NOTE = "note"
# The rows that `enqueue` writes, a job and its log entry, without a notification for each. All but the key
# and the due time is taken from one that `enqueue` wrote.
_FILL = """
SET session_replication_role = replica;
WITH written AS (
    SELECT * FROM pgqueuer WHERE execute_after > now() LIMIT 1
), filled AS (
    INSERT INTO pgqueuer (priority, entrypoint, payload, execute_after, headers, status)
    SELECT priority, entrypoint, payload, now() + interval '1 day' + i * interval '1 s', headers, status
    FROM written, generate_series(1, {count}) AS i
    RETURNING id, status, entrypoint, priority
)
INSERT INTO pgqueuer_log (job_id, status, entrypoint, priority) SELECT * FROM filled;
RESET session_replication_role;
"""


class Adapter(base.Adapter):
    """One entrypoint, and a crontab entry for each schedule."""

    async def prepare(self) -> None:
        """Install the durable tables with the recommended settings of autovacuum."""
        connection = await asyncpg.connect(self.url)
        queries = Queries(AsyncpgDriver(connection))
        await queries.install()
        await queries.optimize_autovacuum()
        await connection.close()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with asyncpg.create_pool(self.url, min_size=_POOL, max_size=_POOL) as pool:
            yield Client(pool)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        connection = await asyncpg.connect(self.url)
        queuer = PgQueuer(AsyncpgDriver(connection))

        @queuer.entrypoint(_NOTE)
        async def note(job: Picked) -> None:
            record(*json.loads(job.payload or b""))

        if settings.plan:
            self._declare(queuer, settings.plan)
        ready()
        await queuer.run(batch_size=settings.concurrency)

    def _declare(self, queuer: PgQueuer, plan: Plan) -> None:
        for number, seconds in enumerate(base.cron_seconds(plan)):

            @queuer.schedule(str(number), f"* * * * * {seconds}")
            async def tick(schedule: Schedule) -> None:
                # The row already tells the next time.
                record(int(schedule.entrypoint), schedule.next_run.timestamp() - plan.period)


class Client(base.Client):
    """Enqueues through a pool."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._queries = Queries(AsyncpgPoolDriver(pool))

    async def put(self, job: Job) -> None:
        await self._queries.enqueue(_NOTE, _payload(job))

    async def put_many(self, jobs: Sequence[Job]) -> None:
        await self._queries.enqueue([_NOTE] * len(jobs), [_payload(job) for job in jobs], [0] * len(jobs))

    async def put_at(self, job: Job) -> None:
        await self._queries.enqueue(_NOTE, _payload(job), execute_after=_from_now(job))

    async def put_many_at(self, jobs: Sequence[Job]) -> None:
        count = len(jobs)
        after = [_from_now(job) for job in jobs]
        await self._queries.enqueue([_NOTE] * count, [_payload(job) for job in jobs], [0] * count, after)

    async def fill(self, count: int) -> None:
        await self.put_at(first_job())
        await self._pool.execute(_FILL.format(count=count - 1))
        # Every worker does this twice a minute; jobs that came over days would have been counted long ago.
        await self._queries.aggregate_logs()

    async def schedules(self, plan: Plan) -> list[float]:
        return base.cron_starts(plan)


def _payload(job: Job) -> bytes:
    return json.dumps(job).encode()


def _from_now(job: Job) -> timedelta:
    return timedelta(seconds=job.due - time.time())
