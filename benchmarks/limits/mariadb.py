"""The limits of MariaDB through asyncmy, every commit durable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncmy

from benchmarks.ledger import now
from benchmarks.limits import loop
from benchmarks.limits.loop import Row
from benchmarks.sizes import CALLERS

_SCHEMA = """
CREATE OR REPLACE TABLE bare (
    id varchar(64) NOT NULL PRIMARY KEY, task varchar(200) NOT NULL, payload longtext NOT NULL,
    queue varchar(100) NOT NULL,
    priority smallint NOT NULL, state varchar(20) NOT NULL, due_at bigint NOT NULL, created_at bigint NOT NULL,
    started_at bigint, finished_at bigint, worker varchar(64), fence bigint NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0, crashes integer NOT NULL DEFAULT 0, blames integer NOT NULL DEFAULT 0,
    on_crash varchar(20) NOT NULL DEFAULT 'retry', retries integer, timeout bigint, result longtext, error longtext,
    traceback longtext, reason text, `schedule` varchar(200), occurrence bigint, waits integer NOT NULL DEFAULT 0,
    KEY bare_claim (state, queue, priority, due_at)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
"""
_INSERT = """
INSERT INTO bare (id, task, payload, queue, priority, state, due_at, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
_CHOOSE = """
SELECT id, task, payload, due_at FROM bare FORCE INDEX (bare_claim)
WHERE state = 'pending' AND queue = 'default' AND priority = 5 AND due_at <= %s
ORDER BY due_at, id LIMIT %s FOR UPDATE SKIP LOCKED
"""
_TAKE = """
UPDATE bare SET state = 'running', started_at = %s, worker = '0123456789abcdef0123456789abcdef' WHERE id IN %s
"""
_LOCKS = "CREATE OR REPLACE TABLE bare_locks (name varchar(200) PRIMARY KEY, token text, deadline bigint, fence bigint)"
_NOW = "CAST(unix_timestamp(now(6)) * 1000000 AS integer)"
_TAKE_LOCK = f"""
INSERT INTO bare_locks VALUES ('benchmark', %s, {_NOW} + 30000000, {_NOW}) ON DUPLICATE KEY UPDATE
    token = IF(deadline <= {_NOW}, VALUES(token), token), fence = IF(deadline <= {_NOW}, fence + 1, fence),
    deadline = IF(deadline <= {_NOW}, VALUES(deadline), deadline)
"""
_RELEASE = f"UPDATE bare_locks SET deadline = 0 WHERE name = 'benchmark' AND token = %s AND deadline > {_NOW}"
_SETTLE = "UPDATE bare SET state = 'succeeded', finished_at = %s WHERE id IN %s"


class _Bare:
    """One connection."""

    def __init__(self, connection: Any, cursor: Any) -> None:
        self._connection = connection
        self._cursor = cursor

    async def execute(self, statement: str, *values: Any) -> int:
        changed: int = await self._cursor.execute(statement, values)
        await self._connection.commit()
        return changed

    async def insert(self, row: Row) -> None:
        await self.execute(_INSERT, *_values(row))

    async def insert_all(self, rows: Sequence[Row]) -> None:
        await self._cursor.executemany(_INSERT, [_values(row) for row in rows])
        await self._connection.commit()

    async def claim(self, batch: int) -> Sequence[Sequence[Any]]:
        at = now()
        await self._cursor.execute(_CHOOSE, (at, batch))
        claimed: Sequence[Sequence[Any]] = await self._cursor.fetchall()
        if claimed:
            await self._cursor.execute(_TAKE, (at, tuple(row[0] for row in claimed)))
        await self._connection.commit()
        return claimed

    async def settle(self, ids: Sequence[str]) -> None:
        await self.execute(_SETTLE, now(), tuple(ids))

    async def left(self) -> int:
        await self._cursor.execute("SELECT count(*) FROM bare WHERE state <> 'succeeded'")
        ((left,),) = await self._cursor.fetchall()
        return int(left)


async def inserts(*, url: str, singles: int, at_once: int, bulk: int) -> dict[str, float]:
    """Return inserts per second: one commit each, by 32 callers at once, and in batches."""
    async with _opened(url, CALLERS) as callers:
        return await loop.inserted(callers[0], callers, singles=singles, at_once=at_once, bulk=bulk)


async def drain(*, url: str, jobs: int, batch: int) -> float:
    """Return how many jobs per second the bare loop claims, runs and settles."""
    async with _opened(url, 2) as (claimer, settler):
        await loop.in_batches(claimer, jobs)
        await claimer.execute("ANALYZE TABLE bare")
        return await loop.drained(claimer, settler, jobs=jobs, batch=batch)


async def round_trips(*, url: str, pings: int) -> float:
    """Return the milliseconds of an insert, a byte to a sleeping event loop and a claim, each at its median."""
    # MariaDB has no way to tell another connection anything.
    async with _opened(url, 2) as (here, there):
        return await loop.round_trip(here, there, pings=pings)


async def locks(*, url: str, pairs: int) -> float:
    """Return how often per second a lock is taken and released, by one statement each."""
    async with _opened(url, 1) as (one,):
        await one.execute(_LOCKS)

        async def ask(statement: str) -> bool:
            return await one.execute(statement, "token") > 0

        return await loop.paired(lambda: ask(_TAKE_LOCK), lambda: ask(_RELEASE), pairs)


@asynccontextmanager
async def _opened(url: str, count: int) -> AsyncIterator[list[_Bare]]:
    """Open connections, and make the table anew."""
    parts = urlsplit(url)
    async with AsyncExitStack() as stack:
        opened: list[_Bare] = []
        for _ in range(count):
            connection = await asyncmy.connect(
                host=parts.hostname, port=parts.port, user=parts.username, db=parts.path[1:]
            )
            stack.push_async_callback(connection.ensure_closed)
            cursor = await stack.enter_async_context(connection.cursor())
            await cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            opened.append(_Bare(connection, cursor))
        await opened[0].execute(_SCHEMA)
        yield opened


def _values(row: Row) -> tuple[str | int, ...]:
    # All of it as values: only then does the driver send many rows as one statement.
    job_id, task, payload, due_at, created_at = row
    return (job_id, task, payload, "default", 5, "pending", due_at, created_at)
