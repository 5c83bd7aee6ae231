"""A caller's transaction on MariaDB: it reads from a snapshot, and writes to what is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from duetime import Scheduler, Task
from duetime.errors import InvalidTransaction
from duetime.model.job import Key
from duetime.stores.base import JobFilter, Store
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import hire, job, put, take_one
from tests.integration.callers import CALLERS, Calling, by_asyncmy, of_alchemy
from tests.support.mariadb import connected, fetch

READ = "SELECT count(*) FROM duetime_jobs"
"""Takes the snapshot."""
REPLACE = Key(value="k", if_exists="replace")


async def double(number: int) -> int:
    return number * 2


@pytest.fixture
def scheduler(mariadb_url: str) -> Scheduler:
    return Scheduler(mariadb_url)


@pytest.fixture
def task(scheduler: Scheduler) -> Task[[int], int]:
    return scheduler.task(name="double")(double)


@pytest.fixture
async def store(mariadb_url: str) -> AsyncIterator[Store]:
    store = open_store(mariadb_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture(params=sorted(CALLERS["mariadb"]))
def calling(request: pytest.FixtureRequest) -> Calling:
    return CALLERS["mariadb"][request.param]


async def waits(url: str) -> None:
    """Return once a transaction waits for a lock of another."""
    async with connected(url) as connection, asyncio.timeout(20):
        while not await fetch(connection, "SELECT 1 FROM information_schema.innodb_lock_waits"):  # noqa: ASYNC110
            # The server looks anew for whoever has not asked for a tenth of a second.
            await asyncio.sleep(0.15)


async def test_the_holder_of_a_key_is_found_though_it_came_after_the_first_look(
    scheduler: Scheduler, task: Task[[int], int], calling: Calling, mariadb_url: str
) -> None:
    async with scheduler, calling(mariadb_url) as caller, asyncio.timeout(20):
        await caller.execute(READ)
        first = await task.options(key="k").enqueue(1)
        assert (await task.options(key="k", tx=caller.tx).enqueue(1)).id == first.id
        await caller.commit()
        assert [record.id for record in await scheduler.jobs.list()] == [first.id]


async def test_the_job_of_an_occurrence_is_found_though_it_came_after_the_first_look(
    store: Store, calling: Calling, mariadb_url: str
) -> None:
    async with calling(mariadb_url) as caller, asyncio.timeout(20):
        await caller.execute(READ)
        first = await put(store, schedule="nightly", occurrence=1)
        late = job(schedule="nightly", occurrence=1)
        assert await store.enqueue([late], tx=caller.tx) == [first]
        await caller.commit()
    assert [found.id for found in await store.find(JobFilter())] == [first]


async def test_a_job_that_has_begun_since_the_first_look_is_not_replaced(
    store: Store, calling: Calling, mariadb_url: str
) -> None:
    await hire(store, "w1")
    first = await put(store, key=REPLACE)
    async with calling(mariadb_url) as caller, asyncio.timeout(20):
        await caller.execute(READ)
        await take_one(store)
        asked = job(key=REPLACE)
        assert await store.enqueue([asked], tx=caller.tx) == [asked.id]
        await caller.commit()
    assert {found.id for found in await store.find(JobFilter())} == {first, asked.id}


async def test_a_key_that_is_taken_in_a_transaction_keeps_nobody_else_from_enqueuing(
    scheduler: Scheduler, task: Task[[int], int], calling: Calling, mariadb_url: str
) -> None:
    async with scheduler, calling(mariadb_url) as caller, asyncio.timeout(20):
        await task.options(tx=caller.tx, key="k").enqueue(1)
        await task.enqueue(2)
        for key in ("before", "later"):
            await task.options(key=key).enqueue(3)
        await caller.rollback()
        assert len(await scheduler.jobs.list()) == 3


@pytest.mark.covers("enqueue-apart")
async def test_who_loses_a_deadlock_is_told_that_the_whole_transaction_is_gone(
    scheduler: Scheduler, task: Task[[int], int], calling: Calling, mariadb_url: str
) -> None:
    async with scheduler, calling(mariadb_url) as loser, by_asyncmy(mariadb_url) as winner:
        await winner.execute("CREATE TABLE orders (id integer)")
        await winner.execute("BEGIN")
        # Who has changed more is spared.
        await winner.execute(f"INSERT INTO orders VALUES {', '.join(['(1)'] * 100)}")
        await task.options(tx=loser.tx, key="x").enqueue(1)
        await task.options(tx=winner.tx, key="y").enqueue(2)
        blocked = asyncio.create_task(task.options(tx=winner.tx, key="x").enqueue(3))
        await waits(mariadb_url)
        with pytest.raises(InvalidTransaction, match=r"rolled back all of tx.*; begin it again"):
            await task.options(tx=loser.tx, key="y").enqueue(4)
        await blocked
        if calling is by_asyncmy:
            # Each statement would be committed by itself now.
            with pytest.raises(InvalidTransaction, match="no transaction open"):
                await task.options(tx=loser.tx, key="z").enqueue(5)
        await loser.rollback()
        await winner.rollback()
        assert await scheduler.jobs.list() == []


@pytest.mark.parametrize("charset", ["latin1", "utf8"])
async def test_a_connection_that_lacks_letters_is_refused_with_the_one_to_choose(
    scheduler: Scheduler, task: Task[[int], int], mariadb_url: str, charset: str
) -> None:
    engine = create_async_engine(f"{of_alchemy(mariadb_url, asynchronous=True)}?charset={charset}")
    async with scheduler, engine.connect() as alchemy, connected(mariadb_url, charset=charset) as native:
        await native.begin()
        for tx in (alchemy, native):
            with pytest.raises(InvalidTransaction, match="connect with charset=utf8mb4"):
                await task.options(tx=tx).enqueue(1)
    await engine.dispose()
