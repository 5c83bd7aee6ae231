"""The limits of Redis through redis-py: scripts in the server, MessagePack both ways, a connection for each caller."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from redis.asyncio import Redis

from benchmarks.figures import percentile
from benchmarks.ledger import checked, now
from benchmarks.moments import odd_moment
from benchmarks.sizes import BATCH, CALLERS
from benchmarks.watch import Watch

_INSERT = """
local due = {}
for _, row in ipairs(cmsgpack.unpack(ARGV[1])) do
  redis.call('HSET', 'bare:' .. row[1], 'id', row[1], 'task', row[2], 'payload', row[3], 'queue', 'default',
             'priority', 5, 'state', 'pending', 'due_at', row[4], 'created_at', row[5])
  due[#due + 1] = row[4]
  due[#due + 1] = row[1]
end
redis.call('ZADD', 'bare', unpack(due))
"""
_CLAIM = """
local ids = redis.call('ZRANGE', 'bare', '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
local claims = {}
for place, id in ipairs(ids) do
  redis.call('HSET', 'bare:' .. id, 'state', 'running', 'started_at', ARGV[1],
             'worker', '0123456789abcdef0123456789abcdef')
  claims[place] = redis.call('HMGET', 'bare:' .. id, 'id', 'task', 'payload', 'due_at')
end
if #ids > 0 then redis.call('ZREM', 'bare', unpack(ids)) end
return cmsgpack.pack(claims)
"""
_SETTLE = """
for _, id in ipairs(cmsgpack.unpack(ARGV[2])) do
  redis.call('HSET', 'bare:' .. id, 'state', 'succeeded', 'finished_at', ARGV[1])
end
"""
_LEFT = """
local left = 0
for _, key in ipairs(redis.call('KEYS', 'bare:*')) do
  if redis.call('HGET', key, 'state') ~= 'succeeded' then left = left + 1 end
end
return left
"""
_CHANNEL = "bare"

Row = tuple[Any, ...]
_pack = msgspec.msgpack.Encoder().encode
_claims = msgspec.msgpack.Decoder(list[tuple[str, str, str, str]])


class _Bare(NamedTuple):
    """One connection, and the scripts by their names in the server."""

    client: Any
    scripts: dict[str, str]

    async def insert(self, rows: Sequence[Row]) -> None:
        await self._run(_INSERT, _pack(rows))

    async def claim(self, batch: int) -> list[tuple[str, str, str, str]]:
        return _claims.decode(await self._run(_CLAIM, now(), batch))

    async def settle(self, ids: Sequence[str]) -> None:
        await self._run(_SETTLE, now(), _pack(ids))

    async def left(self) -> int:
        found: int = await self._run(_LEFT)
        return found

    async def _run(self, script: str, *arguments: Any) -> Any:
        return await self.client.execute_command("EVALSHA", self.scripts[script], 0, *arguments)


def inserts(*, url: str, singles: int, at_once: int, bulk: int) -> dict[str, float]:
    """Return inserts per second: one call each, by 32 callers at once, and in batches."""
    return asyncio.run(_inserts(url, singles, at_once, bulk))


def drain(*, url: str, jobs: int, batch: int) -> float:
    """Return how many jobs per second the bare loop claims, runs and settles."""
    return asyncio.run(_drain(url, jobs, batch))


def round_trips(*, url: str, pings: int) -> float:
    """Return the milliseconds of an insert, a message to its subscriber and a claim, each at its median."""
    return asyncio.run(_round_trips(url, pings))


async def _inserts(url: str, singles: int, at_once: int, bulk: int) -> dict[str, float]:
    rows = _rows(singles + at_once + bulk)
    async with _opened(url, CALLERS) as callers:
        one, *_ = callers
        watch = Watch()
        for row in rows[:singles]:
            await one.insert([row])
        single = singles / watch.seconds()
        together = await _timed_at_once(callers, rows[singles : singles + at_once])
        watch = Watch()
        for start in range(singles + at_once, len(rows), BATCH):
            await one.insert(rows[start : start + BATCH])
        batched = bulk / watch.seconds()
    return {"single": single, "at_once": together, "bulk": batched}


async def _timed_at_once(callers: Sequence[_Bare], rows: Sequence[Row]) -> float:
    async def call(caller: _Bare, share: Sequence[Row]) -> None:
        for row in share:
            await caller.insert([row])

    watch = Watch()
    await asyncio.gather(*(call(caller, rows[n::CALLERS]) for n, caller in enumerate(callers)))
    return len(rows) / watch.seconds()


async def _drain(url: str, jobs: int, batch: int) -> float:
    ran: list[tuple[int, int, int]] = []

    async def handle(job_id: str, due_at: str) -> None:
        ran.append((int(job_id[16:], 16), int(due_at), now()))

    async with _opened(url, 2) as (claimer, settler):
        rows = _rows(jobs)
        for start in range(0, jobs, BATCH):
            await claimer.insert(rows[start : start + BATCH])
        settling: asyncio.Task[Any] | None = None
        watch = Watch()
        claiming = asyncio.create_task(claimer.claim(batch))
        while claimed := await claiming:
            claiming = asyncio.create_task(claimer.claim(batch))
            await asyncio.gather(*[asyncio.create_task(handle(row[0], row[3])) for row in claimed])
            if settling is not None:
                await settling
            settling = asyncio.create_task(settler.settle([row[0] for row in claimed]))
        assert settling is not None
        await settling
        took = watch.seconds()
        assert await claimer.left() == 0
    checked(ran, expected=jobs)
    return jobs / took


async def _round_trips(url: str, pings: int) -> float:
    inserting: list[float] = []
    hinting: list[float] = []
    claiming: list[float] = []
    async with _opened(url, 2) as (here, there), Redis.from_url(url) as hearing, hearing.pubsub() as heard:
        await heard.subscribe(_CHANNEL)
        await heard.get_message(timeout=5.0)
        for row in _rows(pings):
            await odd_moment()
            began = time.perf_counter()
            await here.insert([row])
            inserted = time.perf_counter()
            listening = asyncio.create_task(heard.get_message(timeout=5.0))
            publishing = asyncio.create_task(here.client.publish(_CHANNEL, ""))
            assert await listening
            hinted = time.perf_counter()
            await publishing
            asked = time.perf_counter()
            assert len(await there.claim(100)) == 1
            inserting.append(inserted - began)
            hinting.append(hinted - inserted)
            claiming.append(time.perf_counter() - asked)
    return sum(percentile(times, 0.5) for times in (inserting, hinting, claiming)) * 1000


@asynccontextmanager
async def _opened(url: str, count: int) -> AsyncIterator[list[_Bare]]:
    """Empty the database, and open connections that know the scripts."""
    async with AsyncExitStack() as stack:
        clients = [
            # Straight on one connection: a pool costs more than the call.
            await stack.enter_async_context(Redis.from_url(url, single_connection_client=True))
            for _ in range(count)
        ]
        await clients[0].flushdb()
        scripts = {
            script: await clients[0].script_load(script) for script in (_INSERT, _CLAIM, _SETTLE, _LEFT)
        }
        yield [_Bare(client, scripts) for client in clients]


def _rows(count: int) -> list[Row]:
    at = now()
    return [
        (f"{at:016x}{n:016x}", "benchmarks.note", f'{{"number":{n},"due_at":{at}}}', at, at)
        for n in range(count)
    ]
