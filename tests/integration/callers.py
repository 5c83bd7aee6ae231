"""Transactions of every kind that a caller may have open on the store's database."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import asyncpg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.support.mariadb import connected

_DRIVERS = {
    "sqlite": ("pysqlite", "aiosqlite"),
    "postgresql": ("psycopg", "asyncpg"),
    "mariadb": ("pymysql", "asyncmy"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A transaction, and how its owner ends it."""

    tx: object
    execute: Callable[[str], Awaitable[object]]
    commit: Callable[[], Awaitable[object]]
    rollback: Callable[[], Awaitable[object]]


Calling: TypeAlias = Callable[[str], Any]


def _awaitable(function: Callable[..., object]) -> Callable[..., Awaitable[object]]:
    async def call(*args: object) -> object:
        return function(*args)

    return call


@asynccontextmanager
async def by_sqlite3(url: str) -> AsyncIterator[Caller]:
    connection = sqlite3.connect(urlsplit(url).path[1:])
    try:
        yield Caller(
            tx=connection,
            execute=_awaitable(connection.execute),
            commit=_awaitable(connection.commit),
            rollback=_awaitable(connection.rollback),
        )
    finally:
        connection.close()


@asynccontextmanager
async def by_sqlite3_by_hand(url: str) -> AsyncIterator[Caller]:
    async with by_sqlite3(url) as caller:
        assert isinstance(caller.tx, sqlite3.Connection)
        caller.tx.isolation_level = None
        caller.tx.execute("BEGIN IMMEDIATE")
        yield caller


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[Caller]:
    connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield Caller(
            tx=connection,
            execute=connection.execute,
            commit=transaction.commit,
            rollback=transaction.rollback,
        )
    finally:
        await connection.close()


@asynccontextmanager
async def by_asyncpg_pool(url: str) -> AsyncIterator[Caller]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        await connection.execute("BEGIN")
        yield Caller(
            tx=connection,
            execute=connection.execute,
            commit=partial(connection.execute, "COMMIT"),
            rollback=partial(connection.execute, "ROLLBACK"),
        )


@asynccontextmanager
async def by_asyncmy(url: str) -> AsyncIterator[Caller]:
    async with connected(url) as connection:
        await connection.begin()
        yield Caller(
            tx=connection,
            execute=connection.query,
            commit=connection.commit,
            rollback=connection.rollback,
        )


@asynccontextmanager
async def by_asyncmy_without_autocommit(url: str) -> AsyncIterator[Caller]:
    async with by_asyncmy(url) as caller:
        connection: Any = caller.tx
        await connection.rollback()
        await connection.autocommit(False)
        yield caller


@asynccontextmanager
async def by_session(url: str) -> AsyncIterator[Caller]:
    engine = sa.create_engine(of_alchemy(url))
    with Session(engine) as session:
        yield Caller(
            tx=session,
            execute=_awaitable(lambda sql: session.execute(sa.text(sql))),
            commit=_awaitable(session.commit),
            rollback=_awaitable(session.rollback),
        )
    engine.dispose()


@asynccontextmanager
async def by_connection(url: str) -> AsyncIterator[Caller]:
    engine = sa.create_engine(of_alchemy(url))
    with engine.connect() as connection:
        yield Caller(
            tx=connection,
            execute=_awaitable(lambda sql: connection.execute(sa.text(sql))),
            commit=_awaitable(connection.commit),
            rollback=_awaitable(connection.rollback),
        )
    engine.dispose()


@asynccontextmanager
async def by_async_session(url: str) -> AsyncIterator[Caller]:
    engine = create_async_engine(of_alchemy(url, asynchronous=True))
    async with AsyncSession(engine) as session:
        yield Caller(
            tx=session,
            execute=lambda sql: session.execute(sa.text(sql)),
            commit=session.commit,
            rollback=session.rollback,
        )
    await engine.dispose()


@asynccontextmanager
async def by_async_connection(url: str) -> AsyncIterator[Caller]:
    engine = create_async_engine(of_alchemy(url, asynchronous=True))
    async with engine.connect() as connection:
        yield Caller(
            tx=connection,
            execute=lambda sql: connection.execute(sa.text(sql)),
            commit=connection.commit,
            rollback=connection.rollback,
        )
    await engine.dispose()


def of_alchemy(url: str, *, asynchronous: bool = False) -> str:
    """Return the address as SQLAlchemy wants it, with the driver."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}+{_DRIVERS[scheme][asynchronous]}://{rest}"


_ALCHEMY: dict[str, Calling] = {
    "session": by_session,
    "connection": by_connection,
    "async session": by_async_session,
    "async connection": by_async_connection,
}
CALLERS: dict[str, dict[str, Calling]] = {
    "sqlite": {"native": by_sqlite3, "begun by hand": by_sqlite3_by_hand, **_ALCHEMY},
    "postgresql": {"native": by_asyncpg, "begun by hand": by_asyncpg_pool, **_ALCHEMY},
    "mariadb": {"native": by_asyncmy, "begun by hand": by_asyncmy_without_autocommit, **_ALCHEMY},
}
