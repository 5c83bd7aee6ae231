"""The limits of SQLite: one connection in one thread, WAL, `synchronous=FULL`."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.ledger import checked, now
from benchmarks.limits import loop
from benchmarks.limits.loop import Row
from benchmarks.processes import Watch

_SCHEMA = """
CREATE TABLE IF NOT EXISTS bare (
    id text NOT NULL PRIMARY KEY, task text NOT NULL, payload text NOT NULL, queue text NOT NULL,
    priority integer NOT NULL, state text NOT NULL, due_at integer NOT NULL, created_at integer NOT NULL,
    started_at integer, finished_at integer, worker text, fence integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0, crashes integer NOT NULL DEFAULT 0, blames integer NOT NULL DEFAULT 0,
    on_crash text NOT NULL DEFAULT 'retry', retries integer, timeout integer, result text, error text,
    traceback text, reason text, schedule text, occurrence integer, waits integer NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS bare_claim ON bare (queue, priority, due_at, id) WHERE state = 'pending';
DELETE FROM bare;
"""
_INSERT = """
INSERT INTO bare (id, task, payload, queue, priority, state, due_at, created_at)
VALUES (?, ?, ?, 'default', 5, 'pending', ?, ?)
"""
_CLAIM = """
UPDATE bare SET state = 'running', started_at = ?, worker = '0123456789abcdef0123456789abcdef' WHERE rowid IN (
    SELECT rowid FROM bare
    WHERE state = 'pending' AND queue = 'default' AND priority = 5 AND due_at <= ?
    ORDER BY due_at, id LIMIT ?
) RETURNING id, task, payload, due_at
"""
_SETTLE = "UPDATE bare SET state = 'succeeded', finished_at = ? WHERE id = ?"
_LOCKS = "CREATE TABLE IF NOT EXISTS bare_locks (name text PRIMARY KEY, token text, deadline integer, fence integer)"
_TAKE = """
INSERT INTO bare_locks VALUES ('benchmark', :token, :now + 30000000, :now)
ON CONFLICT (name) DO UPDATE SET
    token = excluded.token, deadline = excluded.deadline, fence = max(bare_locks.fence + 1, excluded.fence)
WHERE bare_locks.deadline <= :now RETURNING fence
"""
_RELEASE = """
UPDATE bare_locks SET deadline = 0 WHERE name = 'benchmark' AND token = :token AND deadline > :now RETURNING 1
"""
_LEFT = "SELECT count(*) FROM bare WHERE state <> 'succeeded'"


class Hop:
    """A connection in a thread of its own; each call is one hop there and back."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._calls: queue.SimpleQueue[tuple[Callable[[sqlite3.Connection], Any], asyncio.Future[Any]] | None]
        self._calls = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __call__(self, work: Callable[[sqlite3.Connection], Any]) -> asyncio.Future[Any]:
        """Run work in the thread."""
        future = self._loop.create_future()
        self._calls.put((work, future))
        return future

    def close(self) -> None:
        """End the thread."""
        self._calls.put(None)
        self._thread.join()

    def _serve(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        while (call := self._calls.get()) is not None:
            work, future = call
            self._loop.call_soon_threadsafe(future.set_result, work(connection))
        connection.close()


class _Bare:
    """The one caller: SQLite has one writer."""

    def __init__(self, hop: Hop) -> None:
        self.hop = hop

    async def insert(self, row: Row) -> None:
        await self.hop(lambda connection: connection.execute(_INSERT, row).close())

    async def insert_all(self, rows: Sequence[Row]) -> None:
        await self.hop(_batch(_INSERT, rows))

    async def claim(self, batch: int) -> Sequence[Sequence[Any]]:
        claimed: Sequence[Sequence[Any]] = await self.hop(_claim(batch))
        return claimed

    async def settle(self, ids: Sequence[str]) -> None:
        await self.hop(_settle(ids))

    async def left(self) -> int:
        ((left,),) = await self.hop(lambda connection: connection.execute(_LEFT).fetchall())
        return int(left)


async def inserts(*, folder: str, singles: int, bulk: int) -> dict[str, float]:
    """Return inserts per second: one commit each, and in batches."""
    async with _opened(folder) as one:
        return {"single": await loop.one_by_one([one], singles), "bulk": await loop.in_batches(one, bulk)}


async def drain(*, folder: str, jobs: int, batch: int) -> float:
    """Return how many jobs per second the bare loop claims, runs and settles."""
    ran: list[tuple[int, int, int]] = []

    async def handle(job_id: str, due_at: int) -> None:
        ran.append((int(job_id[16:], 16), due_at, now()))

    async with _opened(folder) as one:
        await one.insert_all(loop.rows_of(jobs))
        settling: asyncio.Future[None] | None = None
        watch = Watch()
        claiming = one.hop(_claim(batch))
        while claimed := await claiming:
            tasks = [asyncio.create_task(handle(row[0], row[3])) for row in claimed]
            # The thread does one thing after the other: nothing but the next claim is waited for.
            claiming = one.hop(_claim(batch))
            await asyncio.gather(*tasks)
            settling = one.hop(_settle([row[0] for row in claimed]))
        assert settling is not None
        await settling
        took = watch.seconds()
        assert await one.left() == 0
    checked(ran, expected=jobs)
    return jobs / took


async def round_trips(*, folder: str, pings: int) -> float:
    """Return the milliseconds of an insert, a byte to a sleeping event loop and a claim, each at its median."""
    async with _opened(folder) as one:
        return await loop.round_trip(one, one, pings=pings)


async def locks(*, folder: str, pairs: int) -> float:
    """Return how often per second a lock is taken and released, by one statement each."""
    async with _opened(folder) as one:
        await one.hop(lambda connection: connection.execute(_LOCKS).close())

        async def ask(statement: str) -> bool:
            values = {"token": "token", "now": now()}
            return bool(await one.hop(lambda connection: connection.execute(statement, values).fetchall()))

        return await loop.paired(lambda: ask(_TAKE), lambda: ask(_RELEASE), pairs)


@asynccontextmanager
async def _opened(folder: str) -> AsyncIterator[_Bare]:
    """Open the file, and empty the table."""
    with contextlib.closing(Hop(str(Path(folder) / "bare.db"))) as hop:
        await hop(lambda connection: connection.executescript(_SCHEMA).close())
        yield _Bare(hop)


def _batch(statement: str, rows: Sequence[Sequence[str | int]]) -> Callable[[sqlite3.Connection], None]:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(statement, rows)
        connection.execute("COMMIT")

    return work


def _claim(batch: int) -> Callable[[sqlite3.Connection], list[Any]]:
    def work(connection: sqlite3.Connection) -> list[Any]:
        at = now()
        return connection.execute(_CLAIM, (at, at, batch)).fetchall()

    return work


def _settle(ids: Sequence[str]) -> Callable[[sqlite3.Connection], None]:
    at = now()
    return _batch(_SETTLE, [(at, job_id) for job_id in ids])
