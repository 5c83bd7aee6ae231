"""The limits of PostgreSQL through asyncpg, every commit durable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import asyncpg

from benchmarks.ledger import now
from benchmarks.limits import loop
from benchmarks.limits.loop import Row
from benchmarks.sizes import CALLERS

_SCHEMA = """
CREATE TABLE IF NOT EXISTS bare (
    id text COLLATE "C" NOT NULL PRIMARY KEY, task text NOT NULL, payload text NOT NULL,
    queue text COLLATE "C" NOT NULL,
    priority smallint NOT NULL, state text NOT NULL, due_at bigint NOT NULL, created_at bigint NOT NULL,
    started_at bigint, finished_at bigint, worker text, fence bigint NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0, crashes integer NOT NULL DEFAULT 0, blames integer NOT NULL DEFAULT 0,
    on_crash text NOT NULL DEFAULT 'retry', retries integer, timeout bigint, result text, error text,
    traceback text, reason text, schedule text, occurrence bigint, waits integer NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS bare_claim ON bare (queue, priority, due_at, id) WHERE state = 'pending';
TRUNCATE bare;
"""
_INSERT = """
INSERT INTO bare (id, task, payload, queue, priority, state, due_at, created_at)
VALUES ($1, $2, $3, 'default', 5, 'pending', $4, $5)
"""
_INSERT_BATCH = """
INSERT INTO bare (id, task, payload, queue, priority, state, due_at, created_at)
SELECT r.id, r.task, r.payload, 'default', 5, 'pending', r.due_at, r.created_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS r (id, task, payload, due_at, created_at)
"""
_CLAIM = """
UPDATE bare SET state = 'running', started_at = $1, worker = '0123456789abcdef0123456789abcdef' WHERE id IN (
    SELECT id FROM bare
    WHERE state = 'pending' AND queue = 'default' AND priority = 5 AND due_at <= $1
    ORDER BY due_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
) RETURNING id, task, payload, due_at
"""
_SETTLE = "UPDATE bare SET state = 'succeeded', finished_at = $1 WHERE id = ANY($2::text[])"
_POOL = 16
_LOCKS = (
    "CREATE TABLE IF NOT EXISTS bare_locks (name text PRIMARY KEY, token text, deadline bigint, fence bigint)"
)
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_TAKE = f"""
INSERT INTO bare_locks VALUES ('benchmark', $1, {_NOW} + 30000000, {_NOW})
ON CONFLICT (name) DO UPDATE SET
    token = excluded.token, deadline = excluded.deadline, fence = greatest(bare_locks.fence + 1, excluded.fence)
WHERE bare_locks.deadline <= {_NOW} RETURNING fence
"""
_RELEASE = f"UPDATE bare_locks SET deadline = 0 WHERE name = 'benchmark' AND token = $1 AND deadline > {_NOW} RETURNING 1"


class _Bare(NamedTuple):
    """A connection, or a pool of them."""

    driver: Any

    async def insert(self, row: Row) -> None:
        await self.driver.execute(_INSERT, *row)

    async def insert_all(self, rows: Sequence[Row]) -> None:
        await self.driver.execute(_INSERT_BATCH, *_columns(rows))

    async def claim(self, batch: int) -> Sequence[Sequence[Any]]:
        claimed: Sequence[Sequence[Any]] = await self.driver.fetch(_CLAIM, now(), batch)
        return claimed

    async def settle(self, ids: Sequence[str]) -> None:
        await self.driver.execute(_SETTLE, now(), ids)

    async def left(self) -> int:
        left: int = await self.driver.fetchval("SELECT count(*) FROM bare WHERE state <> 'succeeded'")
        return left


async def inserts(*, url: str, singles: int, at_once: int, bulk: int) -> dict[str, float]:
    """Return inserts per second: one commit each, by 32 callers at once, and in batches."""
    async with _opened(url) as (one, _), asyncpg.create_pool(url, min_size=_POOL, max_size=_POOL) as pool:
        callers = [_Bare(pool)] * CALLERS
        return await loop.inserted(one, callers, singles=singles, at_once=at_once, bulk=bulk)


async def drain(*, url: str, jobs: int, batch: int) -> float:
    """Return how many jobs per second the bare loop claims, runs and settles."""
    async with _opened(url) as (claimer, settler):
        await loop.in_batches(claimer, jobs)
        await claimer.driver.execute("ANALYZE bare")
        return await loop.drained(claimer, settler, jobs=jobs, batch=batch)


async def round_trips(*, url: str, pings: int) -> float:
    """Return the milliseconds of an insert, a NOTIFY to its listener and a claim, each at its median."""
    async with _opened(url) as (here, there):
        heard = asyncio.Event()
        await there.driver.add_listener("bare", lambda *_: heard.set())

        async def hint() -> float:
            heard.clear()
            began = time.perf_counter()
            notifying = asyncio.create_task(here.driver.execute("NOTIFY bare"))
            await heard.wait()
            took = time.perf_counter() - began
            await notifying
            return took

        return await loop.round_trip(here, there, pings=pings, hint=hint)


async def locks(*, url: str, pairs: int) -> float:
    """Return how often per second a lock is taken and released, by one statement each."""
    async with _opened(url) as (one, _):
        await one.driver.execute(_LOCKS)

        async def ask(statement: str) -> bool:
            return await one.driver.fetchval(statement, "token") is not None

        return await loop.paired(lambda: ask(_TAKE), lambda: ask(_RELEASE), pairs)


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[list[_Bare]]:
    """Open two connections, and empty the table."""
    async with AsyncExitStack() as stack:
        opened: list[_Bare] = []
        for _ in range(2):
            connection = await asyncpg.connect(url)
            stack.push_async_callback(connection.close)
            opened.append(_Bare(connection))
        await opened[0].driver.execute(_SCHEMA)
        yield opened


def _columns(rows: Sequence[Row]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
