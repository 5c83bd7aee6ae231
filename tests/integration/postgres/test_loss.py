from __future__ import annotations

import asyncio
import contextlib

import pytest

from duetime.errors import StoreUnavailable
from duetime.stores.sql.driver import Query, Script
from tests.integration.postgres.kit import ask, do, eventually, opened, statement
from tools.servers import Postgres, PostgresServer

TERMINATE = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = '{0}' AND pid <> pg_backend_pid()
"""


def cut_all(postgres: Postgres, database: str) -> None:
    assert int(postgres.execute(TERMINATE.format(database))) > 0


async def test_connections_cut_while_unused_are_replaced_without_a_word(
    postgres: Postgres, postgres_database: str
) -> None:
    async with opened(postgres.url(postgres_database), pool=3) as driver:
        await driver.write(do("CREATE TABLE t (n int)"))
        await asyncio.gather(*(driver.read(ask("SELECT 1")) for _ in range(3)))
        cut_all(postgres, postgres_database)
        await driver.write(do("INSERT INTO t VALUES (1)"))
        cut_all(postgres, postgres_database)
        assert await driver.read(ask("SELECT n FROM t")) == [(1,)]


async def test_a_connection_cut_half_way_is_unavailable_and_the_next_verb_works(
    postgres: Postgres, postgres_database: str
) -> None:
    def interrupted() -> Script[None]:
        yield Query(statement("INSERT INTO t VALUES (1)"), {})
        cut_all(postgres, postgres_database)
        yield Query(statement("INSERT INTO t VALUES (2)"), {})

    async with opened(postgres.url(postgres_database), pool=1) as driver:
        await driver.write(do("CREATE TABLE t (n int)"))
        with pytest.raises(StoreUnavailable):
            await driver.write(interrupted)
        assert await driver.write(ask("SELECT count(*) FROM t"), atomic=False) == [(0,)]


async def test_a_read_that_is_cut_is_read_again(postgres: Postgres, postgres_database: str) -> None:
    cuts = 0

    def interrupted() -> Script[int]:
        nonlocal cuts
        yield Query(statement("SELECT 1"), {})
        if not cuts:
            cuts += 1
            cut_all(postgres, postgres_database)
        rows = yield Query(statement("SELECT 2"), {})
        return len(rows)

    async with opened(postgres.url(postgres_database), pool=1) as driver:
        assert await driver.read(interrupted) == 1
    assert cuts == 1


async def test_a_single_statement_that_may_have_had_an_effect_is_not_sent_again(
    postgres: Postgres, postgres_database: str
) -> None:
    async with opened(postgres.url(postgres_database), pool=1) as driver:
        await driver.write(do("CREATE TABLE t (n int)"))
        slow = ask("INSERT INTO t SELECT 1 FROM pg_sleep(30)")
        writing = asyncio.ensure_future(driver.write(slow, atomic=False))
        count = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO t SELECT%' AND state = 'active'"

        async def running() -> bool:
            return postgres.execute(count, database=postgres_database) == "1"

        await eventually(running)
        cut_all(postgres, postgres_database)
        with pytest.raises(StoreUnavailable):
            await writing
        assert not await running()


async def test_after_a_crash_of_the_server_verbs_are_unavailable_and_then_work_again(
    own_postgres: PostgresServer,
) -> None:
    async with opened(own_postgres.url(), pool=3) as driver, asyncio.timeout(45):
        await driver.write(do("CREATE TABLE t (n int)"))
        await asyncio.gather(*(driver.read(ask("SELECT 1")) for _ in range(3)))
        waiting = asyncio.gather(
            *(driver.read(ask("SELECT pg_sleep(20)")) for _ in range(5)), return_exceptions=True
        )
        own_postgres.stop("immediate")
        with pytest.raises(StoreUnavailable):
            await driver.write(do("INSERT INTO t VALUES (1)"))
        with pytest.raises(StoreUnavailable):
            await driver.read(ask("SELECT 1"))
        assert all(isinstance(answer, StoreUnavailable) for answer in await waiting)
        own_postgres.start()
        await driver.write(do("INSERT INTO t VALUES (1)"))
        assert await driver.read(ask("SELECT n FROM t")) == [(1,)]


async def test_waiters_are_served_after_a_connection_broke(
    postgres: Postgres, postgres_database: str
) -> None:
    async with opened(postgres.url(postgres_database), pool=1) as driver:
        for _ in range(3):
            doomed = asyncio.ensure_future(driver.write(do("SELECT pg_sleep(30)")))
            await asyncio.sleep(0)
            others = [asyncio.ensure_future(driver.read(ask("SELECT 1"))) for _ in range(5)]
            await asyncio.sleep(0)
            others.pop(0).cancel()
            doomed.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await doomed
            assert await asyncio.gather(*others) == [[(1,)]] * 4
