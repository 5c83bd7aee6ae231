from __future__ import annotations

import asyncio
import os
from typing import Any

import asyncpg
import pytest

from duetime.errors import (
    InvalidTransaction,
    NotOpen,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from duetime.stores.base import Hint
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.postgres import connection as connect
from duetime.stores.sql.postgres.driver import PostgresDriver
from tests.integration.postgres.kit import ask, do, opened, statement
from tools.servers import Postgres


class FixedClock:
    def now(self) -> int:
        return 42


async def test_a_script_gets_the_rows_of_each_query_and_its_answer_is_returned(postgres_url: str) -> None:
    def script() -> Script[tuple[int, int]]:
        (first,) = yield Query(statement("SELECT $1::bigint", "n"), {"n": 20})
        (second,) = yield Query(statement("SELECT $1::bigint + 1", "n"), {"n": first[0]})
        return first[0], second[0]

    async with opened(postgres_url) as driver:
        assert await driver.write(script) == (20, 21)
        assert await driver.read(script) == (20, 21)


async def test_the_time_is_the_servers_unless_a_clock_was_given(postgres_url: str) -> None:
    now = ask("SELECT $1::bigint", now=None)
    async with opened(postgres_url) as driver:
        assert await driver.read(now) == [(None,)]
    async with opened(postgres_url, clock=FixedClock()) as driver:
        assert await driver.read(now) == [(42,)]


async def test_answers_are_read_into_memory_that_need_not_be_asked_of_the_system(postgres_url: str) -> None:
    connection = await connect.PostgresConnector(postgres_url).connect()
    try:
        transport: Any = connection._transport  # type: ignore[attr-defined]
        # From here on the usual allocator maps each block by itself.
        assert transport.max_size < 128 * 1024
    finally:
        connection.terminate()


async def test_a_plan_that_may_have_been_made_for_an_empty_table_does_not_last(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "_PLANS_LAST", 0.05)
    one = ask("SELECT $1::bigint", n=1)
    plans = ask("SELECT prepare_time FROM pg_prepared_statements WHERE statement = 'SELECT $1::bigint'")
    async with opened(postgres_url, pool=1) as driver, asyncio.timeout(10):
        await driver.read(one)
        first = await driver.read(plans)
        assert len(first) == 1
        while await driver.read(plans) == first:
            await asyncio.sleep(0.01)
            await driver.read(one)


async def test_a_script_that_fails_half_way_leaves_nothing_behind(postgres_url: str) -> None:
    async with opened(postgres_url, pool=1) as driver:
        await driver.write(do("CREATE TABLE t (n int PRIMARY KEY)"))
        with pytest.raises(StoreError, match="duplicate key"):
            await driver.write(do("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)"))
        assert await driver.read(ask("SELECT count(*) FROM t")) == [(0,)]


async def test_a_script_whose_own_code_fails_leaves_nothing_behind(postgres_url: str) -> None:
    def broken() -> Script[None]:
        yield Query(statement("INSERT INTO t VALUES (1)"), {})
        raise ZeroDivisionError

    async with opened(postgres_url, pool=1) as driver:
        await driver.write(do("CREATE TABLE t (n int)"))
        with pytest.raises(ZeroDivisionError):
            await driver.write(broken)
        assert await driver.read(ask("SELECT count(*) FROM t")) == [(0,)]


async def test_a_caller_that_is_cancelled_leaves_nothing_behind_and_no_connection_blocked(
    postgres_url: str,
) -> None:
    async with opened(postgres_url, pool=1) as driver:
        await driver.write(do("CREATE TABLE t (n int)"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await driver.write(do("INSERT INTO t VALUES (1)", "SELECT pg_sleep(30)"))
        assert await driver.read(ask("SELECT count(*) FROM t")) == [(0,)]


async def test_our_transactions_are_read_committed_and_bounded_whatever_the_users_defaults(
    postgres: Postgres, postgres_database: str
) -> None:
    postgres.execute(f"ALTER DATABASE {postgres_database} SET default_transaction_isolation = 'serializable'")
    shown = [
        ask(f"SHOW {name}")
        for name in ("transaction_isolation", "lock_timeout", "statement_timeout", "application_name")
    ]
    async with opened(postgres.url(postgres_database)) as driver:
        found = [(await driver.write(script))[0][0] for script in shown]
    assert found == ["read committed", "4s", "30s", "duetime"]


BOTH_HOLD_ONE = """
DO $$ BEGIN WHILE (SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database
WHERE locktype = 'advisory' AND datname = current_database()) < 2 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$
"""


async def test_scripts_that_lock_each_other_out_are_run_again_until_both_succeed(postgres_url: str) -> None:
    met = asyncio.Barrier(2)
    runs: list[tuple[int, int]] = []

    async def transfer(driver: PostgresDriver, first: int, second: int) -> None:
        def script() -> Script[None]:
            runs.append((first, second))
            yield Query(statement("UPDATE t SET n = n + 1 WHERE id = $1", "id"), {"id": first})
            if len(runs) <= 2:
                yield Query(statement("SELECT pg_advisory_xact_lock($1)", "id"), {"id": first})
                yield Query(statement(BOTH_HOLD_ONE), {})
            yield Query(statement("UPDATE t SET n = n + 1 WHERE id = $1", "id"), {"id": second})

        await met.wait()
        await driver.write(script)

    async with opened(postgres_url) as driver:
        await driver.write(do("CREATE TABLE t (id int, n int)", "INSERT INTO t VALUES (1, 0), (2, 0)"))
        await asyncio.gather(transfer(driver, 1, 2), transfer(driver, 2, 1))
        assert await driver.read(ask("SELECT n FROM t")) == [(2,), (2,)]
    assert len(runs) == 3


async def test_a_script_that_always_collides_is_given_up(postgres_url: str) -> None:
    runs = 0

    def script() -> Script[None]:
        nonlocal runs
        runs += 1
        yield Query(statement("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$"), {})

    async with opened(postgres_url) as driver:
        with pytest.raises(StoreUnavailable, match="too many others"):
            await driver.write(script)
    assert runs == 5


async def test_a_table_that_is_migrated_under_us_is_read_anew(postgres_url: str) -> None:
    async with opened(postgres_url, pool=1) as driver:
        await driver.write(do("CREATE TABLE t (n int)", "INSERT INTO t VALUES (1)"))
        assert await driver.write(ask("SELECT * FROM t")) == [(1,)]
        async with opened(postgres_url) as migration:
            await migration.write(do("ALTER TABLE t ADD COLUMN m int DEFAULT 2"))
        assert await driver.write(ask("SELECT * FROM t")) == [(1, 2)]


async def test_more_callers_than_connections_all_get_their_turn(
    postgres: Postgres, postgres_database: str
) -> None:
    sessions = ask("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    async with opened(postgres.url(postgres_database), pool=3) as driver:
        found = await asyncio.gather(*(driver.read(sessions) for _ in range(200)))
    assert len(found) == 200
    assert max(rows[0][0] for rows in found) <= 3


async def test_a_script_runs_inside_the_callers_own_transaction(postgres_url: str) -> None:
    own: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(postgres_url)
    async with opened(postgres_url) as driver:
        await driver.write(do("CREATE TABLE t (n int)"))
        transaction = own.transaction()
        await transaction.start()
        await driver.borrow(own).run(do("INSERT INTO t VALUES (1)"))
        await transaction.rollback()
        assert await driver.read(ask("SELECT count(*) FROM t")) == [(0,)]
        async with own.transaction():
            await driver.borrow(own).run(do("INSERT INTO t VALUES (1)"))
        assert await driver.read(ask("SELECT count(*) FROM t")) == [(1,)]
    await own.close()


async def test_what_is_not_an_open_transaction_is_refused(postgres_url: str) -> None:
    own: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(postgres_url)
    async with opened(postgres_url) as driver:
        with pytest.raises(InvalidTransaction, match="no transaction open"):
            driver.borrow(own)
        with pytest.raises(InvalidTransaction, match="not dict"):
            driver.borrow({})
    await own.close()


async def test_a_database_that_is_not_there_is_named_with_the_way_to_make_it(postgres: Postgres) -> None:
    with pytest.raises(StoreUnusable, match="CREATE DATABASE nowhere"):
        async with opened(postgres.url("nowhere")):
            pass


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1 cannot be reached"):
        async with opened("postgresql://me:secret@127.0.0.1:1/jobs"):
            pass


@pytest.mark.no_tables
async def test_missing_tables_say_how_to_make_them(postgres_url: str) -> None:
    async with opened(postgres_url) as driver:
        with pytest.raises(SchemaMismatch, match="duetime migrate"):
            await driver.read(ask("SELECT * FROM duetime_jobs"))


async def test_a_read_only_server_is_unavailable(postgres: Postgres, postgres_database: str) -> None:
    postgres.execute(f"ALTER DATABASE {postgres_database} SET default_transaction_read_only = on")
    async with opened(postgres.url(postgres_database)) as driver:
        with pytest.raises(StoreUnavailable, match="read-only"):
            await driver.write(do("CREATE TABLE t (n int)"))
        assert [check.name for check in await driver.doctor() if not check.ok] == ["writable"]


async def test_a_server_without_a_connection_left_is_unavailable(
    postgres: Postgres, postgres_database: str
) -> None:
    postgres.execute(f"CREATE ROLE r_{postgres_database} LOGIN")
    postgres.execute(f"ALTER DATABASE {postgres_database} CONNECTION LIMIT 1")
    url = postgres.url(postgres_database).replace("postgres@", f"r_{postgres_database}@")
    try:
        async with opened(url, pool=1):
            with pytest.raises(StoreUnavailable, match="no connection left"):
                async with opened(url):
                    pass
    finally:
        postgres.execute(f"DROP ROLE r_{postgres_database}")


async def test_a_driver_that_was_closed_says_so_and_can_be_opened_again(postgres_url: str) -> None:
    driver = PostgresDriver(connect.PostgresConnector(postgres_url))
    with pytest.raises(NotOpen):
        await driver.read(ask("SELECT 1"))
    for _ in range(2):
        await driver.open()
        assert await driver.read(ask("SELECT 1")) == [(1,)]
        await driver.close()
        await driver.close()


async def test_a_forked_child_is_told_so_and_leaves_our_connections_alone(postgres_url: str) -> None:
    async def in_child(driver: PostgresDriver) -> None:
        with pytest.raises(NotOpen, match="forked"):
            await driver.read(ask("SELECT 1"))
        driver.hint(Hint("jobs"))
        await driver.close()

    async with opened(postgres_url, pool=1) as driver:
        session = await driver.read(ask("SELECT pg_backend_pid()"))
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(in_child(driver))
            except BaseException:  # noqa: BLE001 -- a child must not go on with the parent's tests
                os._exit(1)
            os._exit(0)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert await driver.read(ask("SELECT pg_backend_pid()")) == session


async def test_closing_waits_for_what_is_running(postgres_url: str) -> None:
    driver = PostgresDriver(connect.PostgresConnector(postgres_url))
    await driver.open()
    running = asyncio.ensure_future(driver.write(ask("SELECT pg_sleep(0.1)")))
    await asyncio.sleep(0)
    await driver.close()
    await running


async def test_the_doctor_finds_nothing_wrong_with_a_plain_server(postgres_url: str) -> None:
    async with opened(postgres_url) as driver:
        checks = await driver.doctor()
    assert [check.name for check in checks] == [
        "version",
        "isolation",
        "durability",
        "writable",
        "connection",
        "tls",
    ]
    assert all(check.ok for check in checks)


async def test_a_sibling_has_one_connection_with_a_plan_to_keep_and_none_before_it_is_used(
    postgres: Postgres, postgres_database: str
) -> None:
    sessions = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{postgres_database}'"
    async with opened(postgres.url(postgres_database)) as driver:
        sibling = driver.sibling()
        await sibling.open()
        assert postgres.execute(sessions) == "1"
        await asyncio.gather(*(sibling.read(ask("SELECT pg_sleep(0.01)")) for _ in range(5)))
        assert postgres.execute(sessions) == "2"
        assert await sibling.read(ask("SHOW plan_cache_mode")) == [("force_generic_plan",)]
        await sibling.close()
