"""Keys in the caller's own transaction: a request that is refused leaves it as it was."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing

import asyncpg
import pytest

from duetime.errors import KeyTaken
from duetime.model.job import Key, NewJob
from duetime.stores.base import JobFilter, Store
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import job, put
from tests.support.mariadb import connected

KEY = Key(value="k")


@pytest.fixture
async def store(sql_url: str) -> AsyncIterator[Store]:
    store = open_store(sql_url)
    await store.open()
    yield store
    await store.close()


async def refused(store: Store, tx: object) -> NewJob:
    """Ask for a batch that cannot be stored, then for a job that can."""
    with pytest.raises(KeyTaken):
        await store.enqueue([job(), job(key=Key(value="k", if_exists="raise"))], tx=tx)
    asked = job(key=Key(value="other"))
    assert await store.enqueue([asked, job(key=KEY)], tx=tx) == [
        asked.id,
        (await store.find(JobFilter()))[0].id,
    ]
    return asked


async def test_a_refused_batch_leaves_nothing_in_the_transaction(store: Store, sql_url: str) -> None:
    first = await put(store, key=KEY)
    if sql_url.startswith("sqlite"):
        with closing(sqlite3.connect(sql_url.removeprefix("sqlite:///"))) as file:
            file.execute("BEGIN IMMEDIATE")
            asked = await refused(store, file)
            file.commit()
    elif sql_url.startswith("mariadb"):
        async with connected(sql_url) as opened:
            await opened.begin()
            asked = await refused(store, opened)
            await opened.commit()
    else:
        connection = await asyncpg.connect(sql_url)
        async with connection.transaction():
            asked = await refused(store, connection)
        await connection.close()
    assert {found.id for found in await store.find(JobFilter())} == {first, asked.id}
