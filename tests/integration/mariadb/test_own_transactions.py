"""A caller's transaction on MariaDB: it reads from a snapshot, and writes to what is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from duetime import Scheduler, Task
from duetime.model.job import Key
from duetime.stores.base import JobFilter, Store
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import hire, job, put, take_one
from tests.integration.callers import CALLERS, Calling

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


async def test_the_holder_of_a_key_is_found_though_it_came_after_the_first_look(
    scheduler: Scheduler, task: Task[[int], int], calling: Calling, mariadb_url: str
) -> None:
    async with scheduler, calling(mariadb_url) as caller, asyncio.timeout(20):
        await caller.execute(READ)
        first = await task.options(key="k").enqueue(1)
        assert (await task.options(key="k", tx=caller.tx).enqueue(1)).id == first.id
        await caller.commit()
        assert [record.id for record in await scheduler.jobs.list()] == [first.id]


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


async def test_an_occurrence_is_the_job_that_was_stored_since_the_first_look(
    store: Store, calling: Calling, mariadb_url: str
) -> None:
    async with calling(mariadb_url) as caller:
        await caller.execute(READ)
        first = await put(store, schedule="s", occurrence=1)
        assert await store.enqueue([job(schedule="s", occurrence=1)], tx=caller.tx) == [first]
        await caller.commit()
    assert [found.id for found in await store.find(JobFilter())] == [first]
