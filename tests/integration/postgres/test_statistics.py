"""Statistics keep no worker waiting."""

from __future__ import annotations

import asyncio

import asyncpg

from duetime import Scheduler
from duetime.model.statistics import PART, StatisticsRow
from duetime.runtime.settling.statistics import fold


def part(number: int) -> StatisticsRow:
    body = '[[0,"a","q",null,{"succeeded":1},{},{},{}]]'
    return StatisticsRow(f"part|{number:05}", "part", PART, "w", number, body)


async def test_who_finds_that_another_merges_does_not_wait_for_it(postgres_url: str) -> None:
    async with Scheduler(postgres_url) as scheduler:
        store = scheduler.store
        await store.add_statistics([part(0)])
        await fold(store)
        await store.add_statistics([part(1)])
        connection = await asyncpg.connect(postgres_url)
        try:
            async with connection.transaction():
                await connection.execute("SELECT id FROM duetime_statistics WHERE id = '' FOR UPDATE")
                async with asyncio.timeout(5):
                    assert not await fold(store)
                    await store.add_statistics([part(2)])
            assert len((await store.statistics_parts(limit=9)).bodies) == 2
        finally:
            await connection.close()
        await fold(store)
        assert len((await store.statistics_parts(limit=9)).bodies) == 0


async def test_no_one_waits_for_locks_while_many_write_and_merge(postgres_url: str) -> None:
    waits: list[str] = []
    schedulers = [Scheduler(postgres_url) for _ in range(16)]

    async def write_and_merge(scheduler: Scheduler, first: int) -> None:
        async with scheduler:
            for number in range(first, first + 20):
                await scheduler.store.add_statistics([part(number)])
                await fold(scheduler.store)

    async def watch() -> None:
        connection = await asyncpg.connect(postgres_url)
        look = (
            "SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%_statistics%'"
        )
        try:
            while True:
                waits.extend(row[0] for row in await connection.fetch(look))
                await asyncio.sleep(0.001)
        finally:
            await connection.close()

    async with Scheduler(postgres_url) as scheduler:
        # The first merge of all makes the row that is locked.
        await scheduler.store.add_statistics([part(9_999)])
        await fold(scheduler.store)
        watching = asyncio.create_task(watch())
        await asyncio.gather(*(write_and_merge(one, n * 100) for n, one in enumerate(schedulers)))
        watching.cancel()
        while await fold(scheduler.store):
            pass
        found = await scheduler.stats.tasks("a", since="1h")
        assert found.total.outcomes == {}
        (row,) = (await scheduler.store.statistics_rows(["task|d|a|0000000000000000"])).values()
        assert row.startswith('[{"succeeded":321}')
    assert waits == []
