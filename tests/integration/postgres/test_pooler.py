from __future__ import annotations

import asyncio

import pytest

from duetime.errors import StoreError
from duetime.stores.base import Hint
from duetime.stores.sql.driver import Query, Script, SingleQueryScript
from duetime.stores.sql.postgres.connection import Pooler
from tests.integration.postgres.kit import ask, do, opened, statement
from tests.integration.postgres.test_hints import ANY, JOBS, listening
from tools.servers import Postgres

POOLERS: tuple[Pooler, ...] = ("auto", "transaction")


async def test_a_pooler_is_noticed(pgbouncer_url: str) -> None:
    async with opened(pgbouncer_url) as driver:
        checks = {check.name: check.ok for check in await driver.doctor()}
    assert checks == {
        "version": True,
        "isolation": True,
        "durability": True,
        "writable": True,
        "connection": False,
        "tls": True,
    }


async def test_scripts_run_through_a_pooler_many_at_once(pgbouncer_url: str) -> None:
    def add() -> Script[int]:
        yield Query(statement("UPDATE t SET n = n + $1::bigint", "by"), {"by": 1})
        rows = yield Query(statement("SELECT n FROM t"), {})
        return len(rows)

    async with opened(pgbouncer_url) as driver, opened(pgbouncer_url) as other:
        await driver.write(do("CREATE TABLE t (n int)", "INSERT INTO t VALUES (0)"))
        await asyncio.gather(*(one.write(add) for one in [driver, other] * 50))
        await asyncio.gather(
            *(one.write(ask("UPDATE t SET n = n + 1"), atomic=False) for one in [driver, other] * 50)
        )
        assert await driver.read(ask("SELECT n FROM t")) == [(200,)]


async def test_what_fails_half_way_behind_a_pooler_leaves_nothing_behind(pgbouncer_url: str) -> None:
    async with opened(pgbouncer_url) as driver:
        await driver.write(do("CREATE TABLE t (n int PRIMARY KEY)"))
        with pytest.raises(StoreError, match="duplicate key"):
            await driver.write(do("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)"))
        assert await driver.read(ask("SELECT count(*) FROM t")) == [(0,)]


async def test_behind_a_pooler_every_statement_is_read_committed_and_bounded(
    postgres: Postgres, postgres_database: str, pgbouncer_url: str
) -> None:
    postgres.execute(f"ALTER DATABASE {postgres_database} SET default_transaction_isolation = 'serializable'")
    settings = "SELECT current_setting('transaction_isolation'), current_setting('lock_timeout')"
    shown = ask(settings)
    noted = SingleQueryScript("note", Query(statement(f"INSERT INTO t {settings}"), {}), list)
    async with opened(pgbouncer_url) as driver:
        await driver.write(do("CREATE TABLE t (isolation text, bound text)"))
        await driver.write(noted, atomic=False)
        found = [
            await driver.write(shown),
            await driver.write(shown, atomic=False),
            await driver.read(shown),
            await driver.read(ask("SELECT * FROM t")),
        ]
    assert found == [[("read committed", "4s")]] * 4


async def test_the_server_behind_a_pooler_keeps_nothing_of_ours(pgbouncer_url: str) -> None:
    async with opened(pgbouncer_url, pool=1) as driver:
        await driver.write(ask("SELECT $1::bigint", n=1))
        left = "SELECT (SELECT count(*) FROM pg_prepared_statements), current_setting('lock_timeout', true)"
        await driver.write(do("CREATE TABLE t (n int, s text)"))
        # A plain query of somebody else who is given the same server.
        async with opened(pgbouncer_url, pooler="transaction", pool=1) as other:
            connection = await other._open_connections().verbs.acquire()
            await connection.execute(f"INSERT INTO t {left}")
            other._open_connections().verbs.release(connection, keep=True)
        assert await driver.read(ask("SELECT n, s FROM t")) == [(0, "0")]


@pytest.mark.parametrize("pooler", POOLERS)
async def test_nothing_is_heard_through_a_pooler_but_hints_are_sent(
    pgbouncer_url: str, postgres_url: str, pooler: Pooler
) -> None:
    async with (
        opened(pgbouncer_url, pooler=pooler) as pooled,
        opened(postgres_url) as direct,
        listening(direct) as ears,
        listening(pooled, connected=False) as own,
    ):
        while not own.heard:
            pooled.hint(JOBS)
            await asyncio.sleep(0)
        await ears.hear(JOBS)
        assert not pooled.hears_others
        assert ANY not in own.heard
        assert direct.hears_others


async def test_a_sibling_works_through_a_pooler(pgbouncer_url: str) -> None:
    async with opened(pgbouncer_url) as driver:
        sibling = driver.sibling()
        await sibling.open()
        assert await sibling.read(ask("SHOW plan_cache_mode")) == [("auto",)], (
            "a pooler's session is not ours"
        )
        sibling.hint(Hint("jobs"))
        await sibling.close()
