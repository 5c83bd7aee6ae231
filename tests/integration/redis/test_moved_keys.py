"""Whole records that are stored come into every index, and leave none behind when they go."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from duetime.errors import StoreError
from duetime.model.stored.copy import RecordKind
from duetime.stores.base import Store
from duetime.stores.open import open_store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import put
from duetime.testing.conformance.moving import all_of, move
from duetime.testing.conformance.story import tell
from tools.servers import RedisServer

HERE, THERE = "here", "there"


@asynccontextmanager
async def opened(url: str, clock: FakeClock, namespace: str) -> AsyncGenerator[Store]:
    store = open_store(url, namespace=namespace, clock=clock)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def keyspace(client: Any, namespace: str) -> dict[str, object]:
    """What is listed under each key; of records themselves, that they are there."""
    tag, found = f"{{{namespace}}}:", dict[str, object]()
    async for key in client.scan_iter(f"{tag}*"):
        name = key.removeprefix(tag)
        if await client.type(key) == "zset":
            found[name] = await client.zrange(key, 0, -1, withscores=True)
        else:
            found[name] = await client.hgetall(key) if name == "keys" else "a record"
    return found


@pytest.mark.covers("copy-keeps-everything", "in-no-registry")
async def test_what_was_moved_is_listed_as_what_was_made_there_and_goes_without_a_trace(
    redis: RedisServer,
) -> None:
    redis.flush()
    clock, url = FakeClock(), redis.url()
    client = Redis.from_url(url, decode_responses=True)
    async with opened(url, clock, HERE) as here, opened(url, clock, THERE) as there, client:
        await tell(here, clock)
        await move(here, there)
        made = await keyspace(client, HERE)
        assert {"keys", "limited", "leases", "answered", "noted", "gated", "holders", "next"} <= made.keys()
        assert await keyspace(client, THERE) == made
        for kind in RecordKind:
            await there.exchange(kind, [record.key for record in await all_of(there, kind)], [])
        assert await keyspace(client, THERE) == {"meta": "a record"}


async def test_jobs_that_somebody_has_edited_are_named(redis: RedisServer) -> None:
    redis.flush()
    clock, url = FakeClock(), redis.url()
    client = Redis.from_url(url, decode_responses=True)
    async with opened(url, clock, HERE) as here, client:
        await put(here)
        edited = await put(here)
        await client.hdel(f"{{{HERE}}}:job:{edited}", "line")
        with pytest.raises(
            StoreError, match=f"jobs {edited} cannot be read, because they were edited by hand"
        ):
            await all_of(here, RecordKind.JOBS)
