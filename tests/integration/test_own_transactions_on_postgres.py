"""A caller's transaction on PostgreSQL: which tables it sees, and how it may end."""

from __future__ import annotations

import asyncpg
import pytest

from duetime import Scheduler, Task
from duetime.errors import InvalidTransaction
from tests.integration.callers import CALLERS

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
