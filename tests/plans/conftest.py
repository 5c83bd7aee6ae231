from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.plans.postgres import ADD_WORKER, Connection, Copies
from tests.support.databases import Databases


@pytest.fixture(scope="session")
def originals() -> dict[str, str]:
    """The databases that were filled so far, by what is in them."""
    return {}


@pytest.fixture
async def copies(databases: Databases, originals: dict[str, str], with_tables: str) -> AsyncIterator[Copies]:
    """Gives a test databases with very many rows."""
    copies = Copies(databases, originals, with_tables)
    yield copies
    await copies.close()


@pytest.fixture
async def connection(postgres_url: str) -> AsyncIterator[Connection]:
    """A connection to a database without jobs."""
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(ADD_WORKER)
    yield connection
    await connection.close()
