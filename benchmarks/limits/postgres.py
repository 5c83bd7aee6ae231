"""The limits of PostgreSQL through asyncpg, every commit durable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import asyncpg

from benchmarks.figures import percentile
from benchmarks.ledger import checked, now
from benchmarks.moments import odd_moment
from benchmarks.sizes import BATCH, CALLERS
from benchmarks.watch import Watch

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

Row = tuple[Any, ...]


def inserts(*, url: str, singles: int, at_once: int, bulk: int) -> dict[str, float]:
    """Return inserts per second: one commit each, by 32 callers at once, and in batches."""
    return asyncio.run(_inserts(url, singles, at_once, bulk))


def drain(*, url: str, jobs: int, batch: int) -> float:
    """Return how many jobs per second the bare loop claims, runs and settles."""
    return asyncio.run(_drain(url, jobs, batch))


def round_trips(*, url: str, pings: int) -> float:
    """Return the milliseconds of an insert, a NOTIFY to its listener and a claim, each at its median."""
    return asyncio.run(_round_trips(url, pings))


async def _inserts(url: str, singles: int, at_once: int, bulk: int) -> dict[str, float]:
    rows = _rows(singles + at_once + bulk)
    pool = await asyncpg.create_pool(url, min_size=_POOL, max_size=_POOL)
    async with pool:
        await pool.execute(_SCHEMA)
        one = await pool.acquire()
        single = await _timed_singles(one, rows[:singles])
        await pool.release(one)
        together = await _timed_at_once(pool, rows[singles : singles + at_once])
        watch = Watch()
        for start in range(singles + at_once, len(rows), BATCH):
            await pool.execute(_INSERT_BATCH, *_columns(rows[start : start + BATCH]))
        batched = bulk / watch.seconds()
    return {"single": single, "at_once": together, "bulk": batched}


async def _timed_singles(connection: Any, rows: Sequence[Row]) -> float:
    watch = Watch()
    for row in rows:
        await connection.execute(_INSERT, *row)
    return len(rows) / watch.seconds()


async def _timed_at_once(pool: Any, rows: Sequence[Row]) -> float:
    async def caller(share: Sequence[Row]) -> None:
        for row in share:
            await pool.execute(_INSERT, *row)

    watch = Watch()
    await asyncio.gather(*(caller(rows[n::CALLERS]) for n in range(CALLERS)))
    return len(rows) / watch.seconds()


async def _drain(url: str, jobs: int, batch: int) -> float:
    claimer, settler = await asyncpg.connect(url), await asyncpg.connect(url)
    await claimer.execute(_SCHEMA)
    await claimer.execute(_INSERT_BATCH, *_columns(_rows(jobs)))
    await claimer.execute("ANALYZE bare")
    ran: list[tuple[int, int, int]] = []

    async def handle(job_id: str, due_at: int) -> None:
        ran.append((int(job_id[16:], 16), due_at, now()))

    settling: asyncio.Task[Any] | None = None
    watch = Watch()
    claiming = asyncio.create_task(claimer.fetch(_CLAIM, now(), batch))
    while claimed := await claiming:
        claiming = asyncio.create_task(claimer.fetch(_CLAIM, now(), batch))
        await asyncio.gather(*[asyncio.create_task(handle(row[0], row[3])) for row in claimed])
        if settling is not None:
            await settling
        settling = asyncio.create_task(settler.execute(_SETTLE, now(), [row[0] for row in claimed]))
    assert settling is not None
    await settling
    took = watch.seconds()
    assert await claimer.fetchval("SELECT count(*) FROM bare WHERE state <> 'succeeded'") == 0
    await claimer.close()
    await settler.close()
    checked(ran, expected=jobs)
    return jobs / took


async def _round_trips(url: str, pings: int) -> float:
    here, there = await asyncpg.connect(url), await asyncpg.connect(url)
    await here.execute(_SCHEMA)
    heard = asyncio.Event()
    await there.add_listener("bare", lambda *_: heard.set())
    inserting: list[float] = []
    hinting: list[float] = []
    claiming: list[float] = []
    for row in _rows(pings):
        await odd_moment()
        began = time.perf_counter()
        await here.execute(_INSERT, *row)
        inserted = time.perf_counter()
        heard.clear()
        notifying = asyncio.create_task(here.execute("NOTIFY bare"))
        await heard.wait()
        hinted = time.perf_counter()
        await notifying
        asked = time.perf_counter()
        assert len(await there.fetch(_CLAIM, now(), 100)) == 1
        inserting.append(inserted - began)
        hinting.append(hinted - inserted)
        claiming.append(time.perf_counter() - asked)
    await here.close()
    await there.close()
    return sum(percentile(times, 0.5) for times in (inserting, hinting, claiming)) * 1000


def _rows(count: int) -> list[Row]:
    at = now()
    return [
        (f"{at:016x}{n:016x}", "benchmarks.note", f'{{"number":{n},"due_at":{at}}}', at, at)
        for n in range(count)
    ]


def _columns(rows: Sequence[Row]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
