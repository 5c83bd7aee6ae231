"""A connection of PostgreSQL's that handlers borrow one after the other: nothing is handed on with it."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from duetime import Scheduler, State, current_job
from duetime.errors import JobFailed
from tests.integration.effects import ask, effects

LEFT = """
    SELECT json_build_object(
        'role', current_user = session_user,
        'name', current_setting('application_name'),
        'bound', current_setting('statement_timeout'),
        'path', current_setting('search_path'),
        'locks', (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
        'table', to_regclass('secret'),
        'channels', (SELECT count(*) FROM pg_listening_channels())
    )::text
"""
MESS = """
    SET application_name = 'mine';
    SET statement_timeout = '1234ms';
    SET search_path = 'tenant';
    SET ROLE pg_monitor;
    SELECT pg_advisory_lock(42);
    CREATE TEMP TABLE secret (n integer);
    LISTEN gossip;
"""


@pytest.fixture
def scheduler(postgres_url: str) -> Scheduler:
    return Scheduler(postgres_url)


async def test_the_next_handler_finds_nothing_of_what_the_last_one_has_set(scheduler: Scheduler) -> None:
    @scheduler.task(name="look")
    async def look() -> str:
        async with current_job().transaction() as tx:
            tx.result = await tx.connection.fetchval(LEFT)
        return ""

    @scheduler.task(name="mess")
    async def mess() -> None:
        async with current_job().transaction() as tx:
            await tx.connection.execute(MESS)

    async with scheduler, scheduler.worker(concurrency=1):
        fresh = await (await look.enqueue()).result(timeout=20)
        job = await mess.enqueue()
        await job.result(timeout=20)
        assert await (await look.enqueue()).result(timeout=20) == fresh
        assert (await job.record()).state is State.SUCCEEDED


async def test_a_codec_that_a_handler_has_set_is_not_the_next_ones(scheduler: Scheduler) -> None:
    @scheduler.task(name="codec")
    async def codec(*, change: bool) -> str:
        async with current_job().transaction() as tx:
            if change:
                await tx.connection.set_type_codec(
                    "int4", schema="pg_catalog", encoder=str, decoder=lambda _: "changed", format="text"
                )
            tx.result = str(await tx.connection.fetchval("SELECT 1::int4"))
        return ""

    async with scheduler, scheduler.worker(concurrency=1):
        assert await (await codec.enqueue(change=True)).result(timeout=20) == "changed"
        assert await (await codec.enqueue(change=False)).result(timeout=20) == "1"


async def test_a_connection_that_was_kept_past_its_block_is_dead(scheduler: Scheduler) -> None:
    kept: list[Any] = []

    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction() as tx:
            kept.append(tx.connection)
            with pytest.raises(asyncpg.InterfaceError, match="released"):
                await kept[0].execute("INSERT INTO effects VALUES (1)")
            await tx.connection.execute("INSERT INTO effects VALUES (2)")

    @scheduler.task(name="keep")
    async def keep() -> None:
        async with current_job().transaction() as tx:
            kept.append(tx.connection)

    async with scheduler, scheduler.worker(concurrency=1):
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        await (await keep.enqueue()).result(timeout=20)
        await (await effect.enqueue()).result(timeout=20)
        assert await effects(scheduler) == [2]


async def test_a_transaction_may_be_as_long_as_it_says(scheduler: Scheduler) -> None:
    """Not that the server ends it before, as it does with connections that lie idle; nor long after."""

    @scheduler.task(name="bounds")
    async def bounds() -> list[str]:
        async with current_job().transaction(timeout=60) as tx:
            names = ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")
            tx.result = [await tx.connection.fetchval("SELECT current_setting($1)", name) for name in names]
        return []

    async with scheduler, scheduler.worker():
        assert await (await bounds.enqueue()).result(timeout=20) == ["65s", "65s", "30s"]


async def test_the_statements_of_a_handler_are_planned_as_the_server_likes(scheduler: Scheduler) -> None:
    """Ours are not: each of them has its index."""

    @scheduler.task(name="plans")
    async def plans() -> str:
        async with current_job().transaction() as tx:
            tx.result = await tx.connection.fetchval("SELECT current_setting('enable_seqscan')")
        return ""

    async with scheduler, scheduler.worker():
        assert [await (await plans.enqueue()).result(timeout=20) for _ in range(2)] == ["on", "on"]


async def test_a_block_that_failed_leaves_nothing_either(scheduler: Scheduler) -> None:
    @scheduler.task(name="lock")
    async def lock() -> None:
        async with current_job().transaction() as tx:
            await tx.connection.execute("SELECT pg_advisory_lock(42)")
            raise ZeroDivisionError

    async with scheduler, scheduler.worker():
        with pytest.raises(JobFailed):
            await (await lock.enqueue()).result(timeout=20)
        assert await ask(scheduler, "SELECT pg_try_advisory_lock(42)") == [True]
