"""The limits of MariaDB through asyncmy, every commit durable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncmy

from benchmarks.figures import percentile
from benchmarks.ledger import checked, now
from benchmarks.limits.hint import byte
from benchmarks.moments import odd_moment
from benchmarks.sizes import BATCH, CALLERS
from benchmarks.watch import Watch

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
_SETTLE = "UPDATE bare SET state = 'succeeded', finished_at = %s WHERE id IN %s"

Row = tuple[Any, ...]


class _Bare:
    """One connection."""

    def __init__(self, connection: Any, cursor: Any) -> None:
        self._connection = connection
        self._cursor = cursor

    async def execute(self, statement: str, *values: Any) -> None:
        await self._cursor.execute(statement, values)
        await self._connection.commit()

    async def insert_all(self, rows: Sequence[Row]) -> None:
        await self._cursor.executemany(_INSERT, rows)
        await self._connection.commit()

    async def claim(self, batch: int) -> Sequence[Row]:
        at = now()
        await self._cursor.execute(_CHOOSE, (at, batch))
        claimed: Sequence[Row] = await self._cursor.fetchall()
        if claimed:
            await self._cursor.execute(_TAKE, (at, tuple(row[0] for row in claimed)))
        await self._connection.commit()
        return claimed

    async def settle(self, claimed: Sequence[Row]) -> None:
        await self.execute(_SETTLE, now(), tuple(row[0] for row in claimed))

    async def left(self) -> int:
        await self._cursor.execute("SELECT count(*) FROM bare WHERE state <> 'succeeded'")
        ((left,),) = await self._cursor.fetchall()
        return int(left)


def inserts(*, url: str, singles: int, at_once: int, bulk: int) -> dict[str, float]:
    """Return inserts per second: one commit each, by 32 callers at once, and in batches."""
    return asyncio.run(_inserts(url, singles, at_once, bulk))


def drain(*, url: str, jobs: int, batch: int) -> float:
    """Return how many jobs per second the bare loop claims, runs and settles."""
    return asyncio.run(_drain(url, jobs, batch))


def round_trips(*, url: str, pings: int) -> float:
    """Return the milliseconds of an insert, a byte to a sleeping event loop and a claim, each at its median."""
    return asyncio.run(_round_trips(url, pings))


async def _inserts(url: str, singles: int, at_once: int, bulk: int) -> dict[str, float]:
    rows = _rows(singles + at_once + bulk)
    async with _opened(url, CALLERS) as callers:
        one, *_ = callers
        single = await _timed(one, rows[:singles])
        watch = Watch()
        shares = (rows[singles + n : singles + at_once : CALLERS] for n in range(CALLERS))
        await asyncio.gather(*(_timed(caller, share) for caller, share in zip(callers, shares, strict=True)))
        together = at_once / watch.seconds()
        watch = Watch()
        for start in range(singles + at_once, len(rows), BATCH):
            await one.insert_all(rows[start : start + BATCH])
        batched = bulk / watch.seconds()
    return {"single": single, "at_once": together, "bulk": batched}


async def _timed(caller: _Bare, rows: Sequence[Row]) -> float:
    watch = Watch()
    for row in rows:
        await caller.execute(_INSERT, *row)
    return len(rows) / watch.seconds()


async def _drain(url: str, jobs: int, batch: int) -> float:
    ran: list[tuple[int, int, int]] = []

    async def handle(job_id: str, due_at: int) -> None:
        ran.append((int(job_id[16:], 16), due_at, now()))

    async with _opened(url, 2) as (claimer, settler):
        rows = _rows(jobs)
        for start in range(0, jobs, BATCH):
            await claimer.insert_all(rows[start : start + BATCH])
        await claimer.execute("ANALYZE TABLE bare")
        settling: asyncio.Task[None] | None = None
        watch = Watch()
        claiming = asyncio.create_task(claimer.claim(batch))
        while claimed := await claiming:
            claiming = asyncio.create_task(claimer.claim(batch))
            await asyncio.gather(*[asyncio.create_task(handle(row[0], row[3])) for row in claimed])
            if settling is not None:
                await settling
            settling = asyncio.create_task(settler.settle(claimed))
        assert settling is not None
        await settling
        took = watch.seconds()
        assert await claimer.left() == 0
    checked(ran, expected=jobs)
    return jobs / took


async def _round_trips(url: str, pings: int) -> float:
    inserting: list[float] = []
    claiming: list[float] = []
    async with _opened(url, 2) as (here, there):
        for row in _rows(pings):
            await odd_moment()
            began = time.perf_counter()
            await here.execute(_INSERT, *row)
            inserted = time.perf_counter()
            assert len(await there.claim(100)) == 1
            inserting.append(inserted - began)
            claiming.append(time.perf_counter() - inserted)
    # MariaDB has no way to tell another connection anything.
    hint = await byte(pings)
    return (percentile(inserting, 0.5) + hint + percentile(claiming, 0.5)) * 1000


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


def _rows(count: int) -> list[Row]:
    at = now()
    return [
        # All of it as values: only then does the driver send many rows as one statement.
        (
            f"{at:016x}{n:016x}",
            "benchmarks.note",
            f'{{"number":{n},"due_at":{at}}}',
            "default",
            5,
            "pending",
            at,
            at,
        )
        for n in range(count)
    ]
