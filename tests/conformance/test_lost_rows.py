"""Jobs whose worker left no trace in the tables are rescued too; no verb can bring that about."""

from __future__ import annotations

import sqlite3
from typing import Any

import asyncpg
import pytest
from redis.asyncio import Redis

from duetime.model.states import State
from duetime.model.urls import parse_hybrid
from duetime.stores.base import Store
from duetime.testing.conformance import StoreSuite
from duetime.testing.conformance.kit import hire, put, read, rescue, take_one
from tests.support.mariadb import connected, fetch

FORGET_WORKER = "DELETE FROM duetime_workers WHERE id = 'w1'"
FORGET_HOLDER = "UPDATE duetime_jobs SET worker = NULL"


async def execute_on_redis(client: Any, statement: str) -> None:
    """Bring about what a statement does to tables."""
    if statement == FORGET_WORKER:
        await client.delete("{duetime}:worker:w1")
        await client.zrem("{duetime}:workers", "w1")
        await client.zrem("{duetime}:leases", "w1")
    else:
        (job_id,) = await client.zrange("{duetime}:jobs", 0, -1)
        await client.hdel(f"{{duetime}}:job:{job_id.decode()}", "worker")
        await client.rename("{duetime}:held:w1", "{duetime}:held:")
        await client.zrem("{duetime}:holders", "w1")
        await client.zadd("{duetime}:holders", {"": 0})


async def execute(url: str, statement: str) -> None:
    if url.startswith("hybrid+"):
        # Where the job is.
        url = parse_hybrid(url).near
    if url.startswith("sqlite:"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            file.execute(statement)
        file.close()
    elif url.startswith("redis:"):
        async with Redis.from_url(url) as client:
            await execute_on_redis(client, statement)
    elif url.startswith("mariadb:"):
        async with connected(url) as opened:
            await fetch(opened, statement)
    else:
        connection = await asyncpg.connect(url, statement_cache_size=0)
        await connection.execute(statement)
        await connection.close()


class TestLostRows(StoreSuite):
    @pytest.mark.parametrize(
        ("loss", "worker"),
        [
            (FORGET_WORKER, "w1"),
            (FORGET_HOLDER, ""),
        ],
    )
    async def test_a_job_that_nobody_known_holds_is_taken_over(
        self, store: Store, store_url: str, loss: str, worker: str
    ) -> None:
        await hire(store, "w1", "w2")
        await put(store)
        claim = await take_one(store)
        await execute(store_url, loss)
        (orphan,) = await rescue(store, "w2")
        assert (orphan.worker, orphan.claim.fence) == (worker, 2)
        record = await read(store, claim.job_id)
        assert (record.state, record.worker) == (State.RUNNING, "w2")
