"""Gives the store suite its stores: every one that `--store` chose."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Iterator

import asyncmy
import asyncpg
import pytest
import pytest_asyncio

from duetime.model.time import Clock
from duetime.model.urls import parse_hybrid
from duetime.stores.base import Store
from duetime.stores.open import open_store
from duetime.stores.sql.statements.loader import TABLES
from duetime.testing.conformance import MakeStore, TestRandomLives
from tests.support.mariadb import connected, fetch
from tests.support.stores import hybrid_of
from tools.servers import MariaDb, Postgres

NAMESPACE = "duetime"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give random lives the time to shrink what they found to the shortest story."""
    for item in items:
        if isinstance(item, pytest.Function) and item.cls is TestRandomLives:
            item.add_marker(pytest.mark.timeout(1_800))


@pytest.fixture(scope="session")
def shared_postgres(postgres: Postgres) -> Iterator[str]:
    """One PostgreSQL database for the whole suite: emptying it is far quicker than making a new one."""
    name = f"conformance_{secrets.token_hex(8)}"
    postgres.create_database(name)
    yield name
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def shared_mariadb(mariadb: MariaDb) -> Iterator[str]:
    """One MariaDB database for the whole suite."""
    name = f"conformance_{secrets.token_hex(8)}"
    mariadb.create_database(name)
    yield name
    mariadb.drop_database(name)


_SHARED = {"postgres": "shared_postgres", "pgbouncer": "shared_postgres", "mariadb": "shared_mariadb"}


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    """The address of a store without jobs."""
    if request.param in {"sqlite", "redis"}:
        url: str = request.getfixturevalue(f"{request.param}_url")
    elif request.param == "hybrid":
        shared = request.getfixturevalue("shared_postgres")
        url = hybrid_of(request.getfixturevalue("redis_url"), request.getfixturevalue("postgres").url(shared))
    else:
        shared = request.getfixturevalue(_SHARED[request.param])
        url = request.getfixturevalue(request.param).url(shared)
    return url


@pytest_asyncio.fixture
async def make_store(store_url: str) -> AsyncIterator[MakeStore]:
    made: list[Store] = []
    unique = secrets.token_hex(4)

    async def make(clock: Clock, *, namespace: str = NAMESPACE) -> Store:
        own = namespace if namespace == NAMESPACE else f"{namespace}_{unique}"
        # Hundreds of lives in one SQLite file would spend their time reading its growing schema.
        alone = store_url.startswith("sqlite:") and namespace.startswith("life")
        store = open_store(f"{store_url}.{namespace}" if alone else store_url, namespace=own, clock=clock)
        made.append(store)
        await store.open()
        return store

    yield make
    await asyncio.gather(*(store.close() for store in made))
    await empty(store_url)


async def empty(url: str) -> None:
    """Delete all that a test has left in the shared tables."""
    url = parse_hybrid(url).far if url.startswith("hybrid+") else url
    erase = {"postgresql": _erase_postgres, "mariadb": _erase_mariadb}.get(url.partition(":")[0])
    if erase is not None:
        await erase(url, [f"DELETE FROM {NAMESPACE}_{table}" for table in TABLES if table != "meta"])


async def _erase_postgres(url: str, statements: list[str]) -> None:
    connection = await asyncpg.connect(url, statement_cache_size=0)
    try:
        for statement in statements:
            await connection.execute(statement)
    except asyncpg.UndefinedTableError:
        """The test had no use for them."""
    finally:
        await connection.close()


async def _erase_mariadb(url: str, statements: list[str]) -> None:
    async with connected(url) as connection:
        with contextlib.suppress(asyncmy.ProgrammingError):  # The test had no use for them.
            for statement in statements:
                await fetch(connection, statement)
