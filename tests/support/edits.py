"""Rows that somebody edits by hand, on each kind of store."""

from __future__ import annotations

import sqlite3
from typing import Literal

import asyncpg
from redis.asyncio import Redis

from tests.support.mariadb import connected, fetch

_KEYS = {"job": "id", "schedule": "name", "worker": "id"}
_COLUMNS = {"trigger": "trigger_spec", "terms": "options"}


async def edit(
    url: str, kind: Literal["job", "schedule", "worker"], key: str, column: str, value: str | int | bytes
) -> None:
    """Put a value into a column of a job, a schedule or a worker."""
    if url.startswith("redis:"):
        async with Redis.from_url(url) as client:
            await client.execute_command("HSET", f"{{duetime}}:{kind}:{key}", column, value)
        return
    named = _COLUMNS.get(column, column) if kind == "schedule" else column
    change, where = f"UPDATE duetime_{kind}s SET {named} = ", f" WHERE {_KEYS[kind]} = '{key}'"
    if url.startswith("sqlite:"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            file.execute(f"{change} ?{where}", [value])
        file.close()
    elif url.startswith("mariadb:"):
        async with connected(url) as connection:
            await fetch(connection, f"{change}{_quoted(value)}{where}")
    else:
        session = await asyncpg.connect(url)
        await session.execute(f"{change}{_quoted(value)}{where}")
        await session.close()


def _quoted(value: str | int | bytes) -> str:
    return str(value) if isinstance(value, int) else f"'{value!s}'"
