"""A caller's transaction on PostgreSQL: which tables it sees, and how it may end."""

from __future__ import annotations

import asyncpg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from duetime import Scheduler, Task
from duetime.errors import InvalidTransaction
from tests.integration.callers import CALLERS, of_alchemy

TENANT = """
    CREATE SCHEMA tenant;
    CREATE TABLE tenant.duetime_meta (LIKE duetime_meta INCLUDING ALL);
    CREATE TABLE tenant.duetime_jobs (LIKE duetime_jobs INCLUDING ALL);
    INSERT INTO tenant.duetime_meta SELECT * FROM duetime_meta;
    UPDATE tenant.duetime_meta SET store_id = 'tenant' WHERE version = 1;
"""


@pytest.fixture
def scheduler(postgres_url: str) -> Scheduler:
    return Scheduler(postgres_url)


@pytest.fixture
def task(scheduler: Scheduler) -> Task[[int], int]:
    @scheduler.task(name="double")
    async def double(number: int) -> int:
        return number * 2

    return double


async def execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(sql)
    await connection.close()


@pytest.mark.covers("enqueue-apart")
@pytest.mark.parametrize("kind", CALLERS["postgresql"])
async def test_a_transaction_that_looks_at_another_tenants_tables_is_refused_however_well_known(
    scheduler: Scheduler, task: Task[[int], int], postgres_url: str, kind: str
) -> None:
    async with scheduler, CALLERS["postgresql"][kind](postgres_url) as caller:
        await execute(postgres_url, TENANT)
        job = await task.options(tx=caller.tx).enqueue(1)
        for schema in ("tenant", "pg_catalog"):
            await caller.execute(f"SET LOCAL search_path = {schema}")
            with pytest.raises(InvalidTransaction, match="search path"):
                await task.options(tx=caller.tx).enqueue(2)
        await caller.commit()
        assert [record.id for record in await scheduler.jobs.list()] == [job.id]


@pytest.mark.covers("enqueue-apart")
async def test_a_transaction_in_two_phases_commits_with_its_jobs(
    scheduler: Scheduler, task: Task[[int], int], postgres_url: str
) -> None:
    engine = sa.create_engine(of_alchemy(postgres_url))
    async with scheduler:
        with Session(engine, twophase=True) as session, session.begin():
            await task.options(tx=session).enqueue(1)
        with engine.connect() as connection, connection.begin_twophase() as transaction:
            await task.options(tx=connection).enqueue(2)
            transaction.prepare()
            transaction.commit()
        with engine.connect() as connection, connection.begin_twophase() as transaction:
            with Session(connection) as session:
                await task.options(tx=session).enqueue(3)
            transaction.prepare()
            transaction.commit()
        assert len(await scheduler.jobs.list()) == 3
    engine.dispose()


async def test_an_async_connection_that_was_never_opened_is_refused(
    scheduler: Scheduler, task: Task[[int], int], postgres_url: str
) -> None:
    engine = create_async_engine(of_alchemy(postgres_url, asynchronous=True))
    async with scheduler:
        with pytest.raises(InvalidTransaction, match="not been started"):
            await task.options(tx=engine.connect()).enqueue(1)
    await engine.dispose()


@pytest.mark.parametrize("kind", CALLERS["postgresql"])
async def test_a_transaction_that_has_failed_already_is_refused(
    scheduler: Scheduler, task: Task[[int], int], postgres_url: str, kind: str
) -> None:
    async with scheduler, CALLERS["postgresql"][kind](postgres_url) as caller:
        with pytest.raises(Exception, match="division by zero"):
            await caller.execute("SELECT 1 / 0")
        with pytest.raises(InvalidTransaction, match="roll it back"):
            await task.options(tx=caller.tx).enqueue(1)
