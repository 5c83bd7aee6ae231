"""The limits of Redis through redis-py: scripts in the server, MessagePack both ways, a connection for each caller."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from redis.asyncio import Redis

from benchmarks.ledger import now
from benchmarks.limits import loop
from benchmarks.limits.loop import Row
from benchmarks.sizes import CALLERS

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

_pack = msgspec.msgpack.Encoder().encode
# Redis keeps numbers as texts.
_claims = msgspec.msgpack.Decoder(list[tuple[str, str, str, int]], strict=False)


class _Bare(NamedTuple):
    """One connection, and the scripts by their names in the server."""

    client: Any
    scripts: dict[str, str]

    async def insert(self, row: Row) -> None:
        await self.insert_all([row])

    async def insert_all(self, rows: Sequence[Row]) -> None:
        await self._run(_INSERT, _pack(rows))

    async def claim(self, batch: int) -> list[tuple[str, str, str, int]]:
        return _claims.decode(await self._run(_CLAIM, now(), batch))

    async def settle(self, ids: Sequence[str]) -> None:
        await self._run(_SETTLE, now(), _pack(ids))

    async def left(self) -> int:
        found: int = await self._run(_LEFT)
        return found

    async def _run(self, script: str, *arguments: Any) -> Any:
        return await self.client.execute_command("EVALSHA", self.scripts[script], 0, *arguments)


async def inserts(*, url: str, singles: int, at_once: int, bulk: int) -> dict[str, float]:
    """Return inserts per second: one call each, by 32 callers at once, and in batches."""
    async with _opened(url, CALLERS) as callers:
        return await loop.inserted(callers[0], callers, singles=singles, at_once=at_once, bulk=bulk)


async def drain(*, url: str, jobs: int, batch: int) -> float:
    """Return how many jobs per second the bare loop claims, runs and settles."""
    async with _opened(url, 2) as (claimer, settler):
        await loop.in_batches(claimer, jobs)
        return await loop.drained(claimer, settler, jobs=jobs, batch=batch)


async def round_trips(*, url: str, pings: int) -> float:
    """Return the milliseconds of an insert, a message to its subscriber and a claim, each at its median."""
    async with _opened(url, 2) as (here, there), Redis.from_url(url) as hearing, hearing.pubsub() as heard:
        await heard.subscribe(_CHANNEL)
        await heard.get_message(timeout=5.0)

        async def hint() -> float:
            began = time.perf_counter()
            listening = asyncio.create_task(heard.get_message(timeout=5.0))
            publishing = asyncio.create_task(here.client.publish(_CHANNEL, ""))
            assert await listening
            took = time.perf_counter() - began
            await publishing
            return took

        return await loop.round_trip(here, there, pings=pings, hint=hint)


async def locks(*, url: str, pairs: int) -> float:
    """Return how often per second redis-py's own lock is taken and released."""
    async with Redis.from_url(url) as client:
        lock = client.lock("benchmark", timeout=30)

        async def release() -> bool:
            await lock.release()
            return True

        return await loop.paired(lambda: lock.acquire(blocking=False), release, pairs)


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
