"""Connections to a MariaDB that are none of the store's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncmy


@asynccontextmanager
async def connected(url: str, **options: Any) -> AsyncIterator[asyncmy.Connection]:
    """Connect to the database of a URL; each statement is committed by itself."""
    parts = urlsplit(url)
    connection = await asyncmy.connect(
        host=parts.hostname,
        port=parts.port,
        user=parts.username,
        database=parts.path[1:],
        autocommit=True,
        **options,
    )
    try:
        yield connection
    finally:
        connection.close()


async def fetch(connection: asyncmy.Connection, sql: str) -> list[Any]:
    """Run a statement and return its rows, if it has any."""
    cursor = connection.cursor()
    await cursor.execute(sql)
    return [] if cursor.description is None else list(await cursor.fetchall())
