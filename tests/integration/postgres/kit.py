"""Drivers on real servers, and scripts to run on them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from duetime.model.time import Clock
from duetime.stores.sql.driver import Query, Script, Statement
from duetime.stores.sql.postgres.connection import Pooler, PostgresConnector
from duetime.stores.sql.postgres.driver import PostgresDriver


@contextlib.asynccontextmanager
async def opened(
    url: str, *, pool: int = 10, pooler: Pooler = "auto", clock: Clock | None = None
) -> AsyncIterator[PostgresDriver]:
    driver = PostgresDriver(PostgresConnector(url, pooler=pooler), pool=pool, clock=clock)
    await driver.open()
    try:
        yield driver
    finally:
        await driver.close()


def statement(sql: str, *names: str) -> Statement:
    return Statement("test", sql, names)


def ask(sql: str, **values: object) -> Callable[[], Script[list[Any]]]:
    """A script of one statement, whose parameters are numbered in the order given."""

    def script() -> Script[list[Any]]:
        rows = yield Query(statement(sql, *values), values)
        return [tuple(row) for row in rows]

    return script


def do(*texts: str) -> Callable[[], Script[None]]:
    """A script of several statements."""

    def script() -> Script[None]:
        for text in texts:
            yield Query(statement(text), {})

    return script


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return when something has come to be that only asking can tell."""
    while not await condition():  # noqa: ASYNC110 -- the server raises no event of ours
        await asyncio.sleep(0.01)
