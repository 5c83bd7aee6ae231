"""Databases of the shared PostgreSQL: copies of ones that are made once, since a copy takes a few milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from duetime.stores.open import open_store
from tools.servers import Postgres

_COPIES_FILES = 150_000
"""The version from which PostgreSQL is asked to copy whole files, as it always did before."""


class Databases:
    """Makes and drops databases by a connection that stays open."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._connection = psycopg.connect(postgres.url(), autocommit=True)
        self._how = "STRATEGY file_copy" if self._connection.info.server_version >= _COPIES_FILES else ""

    def create(self, *, like: str = "template1") -> str:
        """Copy a database that nobody is connected to and return the copy's name."""
        name = f"test_{uuid4().hex}"
        self._connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{like}" {self._how}'.encode())
        return name

    def drop(self, name: str) -> None:
        """Drop a database, and the connections that still use it."""
        self._connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())

    def url(self, name: str) -> str:
        """Return the address of one of them."""
        return self._postgres.url(name)

    def close(self) -> None:
        """Leave the databases that are left to the end of the server."""
        self._connection.close()


@pytest.fixture(scope="session")
def databases(postgres: Postgres) -> Iterator[Databases]:
    """Makes databases of the shared PostgreSQL."""
    databases = Databases(postgres)
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def with_tables(databases: Databases) -> str:
    """The name of a database with our tables and nothing in them, to be copied."""

    async def make_tables(url: str) -> None:
        store = open_store(url)
        await store.open()
        await store.close()

    name = databases.create()
    asyncio.run(make_tables(databases.url(name)))
    return name


@pytest.fixture
def postgres_database(request: pytest.FixtureRequest, databases: Databases) -> Iterator[str]:
    """The name of a database with empty tables, or by `no_tables` of an empty database; it is dropped after the test."""
    bare = request.node.get_closest_marker("no_tables") is not None
    name = databases.create() if bare else databases.create(like=request.getfixturevalue("with_tables"))
    yield name
    databases.drop(name)
