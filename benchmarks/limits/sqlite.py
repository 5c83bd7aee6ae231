"""The limits of SQLite: one connection in one thread, WAL, `synchronous=FULL`."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import percentile
from benchmarks.ledger import checked, now
from benchmarks.limits.hint import byte
from benchmarks.moments import odd_moment
from benchmarks.sizes import BATCH
from benchmarks.watch import Watch

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

Row = tuple[Any, ...]


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


def inserts(*, folder: str, singles: int, bulk: int) -> dict[str, float]:
    """Return inserts per second: one commit each, and in batches."""
    return asyncio.run(_inserts(folder, singles, bulk))


def drain(*, folder: str, jobs: int, batch: int) -> float:
    """Return how many jobs per second the bare loop claims, runs and settles."""
    return asyncio.run(_drain(folder, jobs, batch))


def round_trips(*, folder: str, pings: int) -> float:
    """Return the milliseconds of an insert, a byte to a sleeping event loop and a claim, each at its median."""
    return asyncio.run(_round_trips(folder, pings))


async def _inserts(folder: str, singles: int, bulk: int) -> dict[str, float]:
    hop = await _opened(folder)
    rows = _rows(singles + bulk)
    watch = Watch()
    for row in rows[:singles]:
        await hop(_single(row))
    single = singles / watch.seconds()
    watch = Watch()
    for start in range(singles, singles + bulk, BATCH):
        await hop(_batch(_INSERT, rows[start : start + BATCH]))
    hop_bulk = bulk / watch.seconds()
    hop.close()
    return {"single": single, "bulk": hop_bulk}


async def _drain(folder: str, jobs: int, batch: int) -> float:
    hop = await _opened(folder)
    await hop(_batch(_INSERT, _rows(jobs)))
    ran: list[tuple[int, int, int]] = []

    async def handle(job_id: str, due_at: int) -> None:
        ran.append((int(job_id[16:], 16), due_at, now()))

    settling: asyncio.Future[Any] | None = None
    watch = Watch()
    claiming = hop(_claim(batch))
    while claimed := await claiming:
        tasks = [asyncio.create_task(handle(row[0], row[3])) for row in claimed]
        claiming = hop(_claim(batch))
        await asyncio.gather(*tasks)
        settling = hop(_settle([row[0] for row in claimed]))
    assert settling is not None
    await settling
    took = watch.seconds()
    left = await hop(
        lambda c: c.execute("SELECT count(*) FROM bare WHERE state <> 'succeeded'").fetchone()[0]
    )
    assert left == 0
    hop.close()
    checked(ran, expected=jobs)
    return jobs / took


async def _round_trips(folder: str, pings: int) -> float:
    hop = await _opened(folder)
    inserting: list[float] = []
    claiming: list[float] = []
    for row in _rows(pings):
        await odd_moment()
        began = time.perf_counter()
        await hop(_single(row))
        inserted = time.perf_counter()
        assert len(await hop(_claim(100))) == 1
        inserting.append(inserted - began)
        claiming.append(time.perf_counter() - inserted)
    hop.close()
    hint = await byte(pings)
    return (percentile(inserting, 0.5) + hint + percentile(claiming, 0.5)) * 1000


async def _opened(folder: str) -> Hop:
    hop = Hop(str(Path(folder) / "bare.db"))
    await hop(lambda connection: connection.executescript(_SCHEMA).close())
    return hop


def _rows(count: int) -> list[Row]:
    at = now()
    return [
        (f"{at:016x}{n:016x}", "benchmarks.note", f'{{"number":{n},"due_at":{at}}}', at, at)
        for n in range(count)
    ]


def _single(row: Row) -> Callable[[sqlite3.Connection], None]:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute(_INSERT, row)

    return work


def _batch(statement: str, rows: Sequence[Row]) -> Callable[[sqlite3.Connection], None]:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(statement, rows)
        connection.execute("COMMIT")

    return work


def _claim(batch: int) -> Callable[[sqlite3.Connection], list[Row]]:
    def work(connection: sqlite3.Connection) -> list[Row]:
        at = now()
        return connection.execute(_CLAIM, (at, at, batch)).fetchall()

    return work


def _settle(ids: Sequence[str]) -> Callable[[sqlite3.Connection], None]:
    at = now()
    return _batch(_SETTLE, [(at, job_id) for job_id in ids])
