"""What is uninstalled is gone to the last table or key, and nothing of anyone else's goes with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import asyncpg
import pytest
from redis.asyncio import Redis

from duetime import Scheduler
from duetime.testing import FakeClock
from duetime.testing.conformance import story
from tests.support.mariadb import connected, fetch


async def run(url: str, *statements: str) -> list[str]:
    """Run statements and return the names that the last one finds."""
    rows: list[Any] = []
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            for statement in statements:
                rows = file.execute(statement).fetchall()
    elif url.startswith("mariadb:"):
        async with connected(url) as opened:
            for statement in statements:
                rows = await fetch(opened, statement)
    else:
        connection = await asyncpg.connect(url, statement_cache_size=0)
        for statement in statements:
            rows = await connection.fetch(statement)
        await connection.close()
    return sorted(row[0] for row in rows)


async def make_own(url: str) -> list[str]:
    """Store what is somebody else's, some of it under names like ours; return the names."""
    if not url.startswith("redis:"):
        names = ["duetime_orders", "my_duetime_jobs", "orders"]
        await run(url, *(f"CREATE TABLE {name} (id integer)" for name in names))
        return names
    names = ["duetime:orders", "orders", "{duetime_more}:jobs", "{duetime}"]
    async with Redis.from_url(url) as client:
        for name in names:
            await client.set(name, "1")
    return names


async def everything(url: str) -> list[str]:
    """Name all tables or keys that there are."""
    if url.startswith("redis:"):
        async with Redis.from_url(url, decode_responses=True) as client:
            return sorted(str(name) for name in await client.keys())
    if url.startswith("sqlite:"):
        return await run(url, "SELECT name FROM sqlite_master WHERE type <> 'index'")
    schema = "database()" if url.startswith("mariadb:") else "current_schema()"
    return await run(
        url,
        f"SELECT concat(table_name) FROM information_schema.tables WHERE table_schema = {schema}",
    )


async def cut_off(url: str) -> None:
    """Leave what an uninstall leaves that was cut off."""
    if url.startswith("redis:"):
        async with Redis.from_url(url) as client:
            await client.delete("{duetime}:jobs", "{duetime}:workers")
    else:
        await run(url, "DROP TABLE duetime_jobs", "DROP TABLE duetime_gates")


@pytest.mark.parametrize("again", [False, True])
async def test_all_of_ours_goes_also_after_it_was_cut_off_and_nothing_else(
    store_url: str, *, again: bool
) -> None:
    own = await make_own(store_url)
    scheduler = Scheduler(store_url)
    async with scheduler:
        await story.tell(scheduler.store, FakeClock())
        async with scheduler.lock("report"):
            """Also locks, which have a table of their own once there was one."""
        if again:
            await cut_off(store_url)
        assert len(await scheduler.store.uninstall()) >= 8
    assert await everything(store_url) == own
