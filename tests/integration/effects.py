"""What handlers write to the store's own database, and how tests look at it from outside."""

from __future__ import annotations

import inspect
import sqlite3
from typing import Any

import asyncmy
import asyncpg

from duetime import Scheduler
from tests.support.mariadb import connected, fetch


async def run(connection: Any, sql: str) -> Any:
    """Run a statement on whichever connection it is."""
    if isinstance(connection, asyncmy.Connection):
        return await fetch(connection, sql)
    done = connection.execute(sql)
    return await done if inspect.isawaitable(done) else done


async def ask(scheduler: Scheduler, sql: str) -> list[Any]:
    """Ask the database on a connection of our own."""
    if scheduler.url.startswith("sqlite"):
        with sqlite3.connect(scheduler.url.removeprefix("sqlite:///"), isolation_level=None) as connection:
            rows = [row[0] for row in connection.execute(sql)]
        connection.close()
        return rows
    if scheduler.url.startswith("mariadb"):
        async with connected(scheduler.url) as other:
            return [row[0] for row in await fetch(other, sql)]
    own: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(scheduler.url)
    try:
        return [row[0] for row in await own.fetch(sql)]
    finally:
        await own.close()


async def effects(scheduler: Scheduler) -> list[int]:
    return await ask(scheduler, "SELECT n FROM effects ORDER BY n")


async def effect_elsewhere(scheduler: Scheduler) -> bool:
    """Whether others can write: nothing is left locked."""
    await ask(scheduler, "INSERT INTO effects VALUES (99) RETURNING n")
    return 99 in await effects(scheduler)
