"""A database that does not answer for a while holds up nobody who does not wait for it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from typing import Any
from urllib.parse import urlsplit

import asyncmy
import asyncpg
import pytest
from redis.asyncio import Redis

from duetime import Scheduler

TURNS = 200


@asynccontextmanager
async def locked_sqlite(url: str) -> AsyncIterator[None]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@asynccontextmanager
async def locked_postgres(url: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("LOCK TABLE duetime_jobs IN ACCESS EXCLUSIVE MODE")
            yield
    finally:
        await connection.close()


@asynccontextmanager
async def locked_mariadb(url: str) -> AsyncIterator[None]:
    parts = urlsplit(url)
    connection: Any = await asyncmy.connect(
        host=parts.hostname, port=parts.port, user=parts.username, db=parts.path[1:]
    )
    await connection.query("LOCK TABLES duetime_jobs WRITE")
    yield
    await connection.query("UNLOCK TABLES")
    await connection.ensure_closed()


@asynccontextmanager
async def paused_redis(url: str) -> AsyncIterator[None]:
    async with Redis.from_url(url) as client:
        await client.client_pause(60_000, all=False)
        yield
        await client.client_unpause()


STALLS: dict[str, Callable[[str], AbstractAsyncContextManager[None]]] = {
    "sqlite": locked_sqlite,
    "postgresql": locked_postgres,
    "mariadb": locked_mariadb,
    "redis": paused_redis,
}


@pytest.mark.covers("stalled-server")
async def test_the_event_loop_turns_while_the_database_stands_still(store_url: str) -> None:
    scheduler = Scheduler(store_url)

    @scheduler.task(name="greet")
    async def greet() -> str:
        return "hello"

    async with scheduler:
        # A client that blocks the loop would never come to the end of the stall.
        async with STALLS[store_url.partition(":")[0]](store_url):
            requests = [asyncio.create_task(greet.enqueue()) for _ in range(3)]
            for _ in range(TURNS):
                await asyncio.sleep(0.001)
            assert not any(request.done() for request in requests)
        jobs = await asyncio.gather(*requests)
        async with scheduler.worker():
            assert [await job.result(timeout=20) for job in jobs] == ["hello"] * 3
