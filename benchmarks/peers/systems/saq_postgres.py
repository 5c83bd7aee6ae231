"""SAQ on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from saq.queue.postgres import PostgresQueue

from benchmarks.peers.systems import saq_base

_POOL = 20
# The rows that `enqueue` writes. All but the key and the due time is taken from one that it wrote.
_FILL = """
INSERT INTO saq_jobs (key, job, queue, status, priority, group_key, scheduled)
SELECT
    copy.key, convert_to(replace(convert_from(job, 'UTF8'), written.key, copy.key), 'UTF8'),
    queue, status, priority, group_key, extract(epoch FROM now())::bigint + 86400 + copy.n
FROM (SELECT * FROM saq_jobs WHERE scheduled > extract(epoch FROM now()) + 3600 LIMIT 1) AS written,
    generate_series(1, {count}) AS n, LATERAL (SELECT n, gen_random_uuid()::text AS key) AS copy
"""


class Adapter(saq_base.Adapter):
    """A queue on a pool of connections; it looks for jobs that have fallen due ten times a second."""

    eager = 0.1

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[PostgresQueue]:
        """Connect the queue."""
        queue = PostgresQueue.from_url(self.url, min_size=_POOL, max_size=_POOL)
        await queue.connect()
        try:
            yield queue
        finally:
            await queue.disconnect()

    def asking(self, queue: Any) -> Client:
        """Return the client of a queue that is connected."""
        return Client(queue)


class Client(saq_base.Client):
    """Enqueues for due times that the table rounds to full seconds."""

    async def copy(self, count: int) -> None:
        """Store rows like the one that is there."""
        async with self._queue.pool.connection() as connection:
            await connection.execute(_FILL.format(count=count))
