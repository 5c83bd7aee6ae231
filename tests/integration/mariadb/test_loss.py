"""A MariaDB that goes away, comes back, or takes no changes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from duetime.errors import StoreUnavailable
from duetime.stores.base import Store
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import finish, hire, put, read, take_one
from tools.servers import MariaDb, MariaDbServer

CUT = "SELECT group_concat('KILL ', id SEPARATOR '; ') FROM information_schema.processlist WHERE db = '{0}'"


def cut_all(mariadb: MariaDb, database: str) -> None:
    kills = mariadb.execute(CUT.format(database))
    assert kills.startswith("KILL")
    mariadb.execute(kills)


@pytest_asyncio.fixture
async def store(mariadb: MariaDb, mariadb_database: str) -> AsyncIterator[Store]:
    store = open_store(mariadb.url(mariadb_database))
    await store.open()
    yield store
    await store.close()


async def test_connections_cut_while_unused_are_replaced_without_a_word(
    store: Store, mariadb: MariaDb, mariadb_database: str
) -> None:
    cut_all(mariadb, mariadb_database)
    job_id = await put(store)
    cut_all(mariadb, mariadb_database)
    assert (await read(store, job_id)).id == job_id


async def test_a_server_that_is_killed_loses_nothing_and_is_found_again(own_mariadb: MariaDbServer) -> None:
    store = open_store(own_mariadb.create_database("jobs"))
    await store.open()
    try:
        await hire(store, "w1")
        done, waiting = await put(store), await put(store, delay=60_000_000)
        claim = await take_one(store)
        own_mariadb.kill()
        with pytest.raises(StoreUnavailable):
            await store.get([done])
        own_mariadb.start()
        assert claim.token in await finish(store, claim, now=await store.now())
        assert [job.id for job in await store.get([done, waiting])] == [done, waiting]
    finally:
        await store.close()


async def test_a_read_only_server_says_so_and_works_again_afterwards(own_mariadb: MariaDbServer) -> None:
    own_mariadb.create_database("jobs")
    # An account without the right to write all the same.
    own_mariadb.execute("CREATE USER ann; GRANT ALL ON jobs.* TO ann")
    store = open_store(own_mariadb.url("jobs").replace("root", "ann"))
    await store.open()
    try:
        own_mariadb.execute("SET GLOBAL read_only = 1")
        with pytest.raises(StoreUnavailable, match="read-only"):
            await put(store)
        assert [check.name for check in await store.doctor() if check.name == "writable" and not check.ok]
        own_mariadb.execute("SET GLOBAL read_only = 0")
        assert await put(store)
    finally:
        await store.close()


async def test_a_missing_database_and_an_unknown_user_are_named(mariadb: MariaDb) -> None:
    for url, said in (
        (mariadb.url("nosuch"), "nosuch"),
        (mariadb.url().replace("root", "bob"), "bob may not"),
    ):
        store = open_store(url)
        with pytest.raises(Exception, match=said):
            await store.open()
