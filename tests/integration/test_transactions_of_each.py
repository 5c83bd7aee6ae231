"""What a handler's transaction is on one database and not on the other; test_transactions.py has what they share."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from pathlib import Path

import asyncpg
import pytest

from duetime import Scheduler, current_job
from duetime.errors import BlockingCallInLoop, InvalidOption, JobFailed, TransactionMisused, Unsupported
from tests.integration.effects import ask, effect_elsewhere, effects
from tests.integration.kit import until


@pytest.mark.covers("own-error-kept")
async def test_the_handlers_error_is_not_masked_when_the_connection_is_lost_as_well(
    postgres_url: str,
) -> None:
    scheduler = Scheduler(postgres_url)

    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction() as tx:
            pid = await tx.connection.fetchval("SELECT pg_backend_pid()")
            await ask(scheduler, f"SELECT pg_terminate_backend({pid})")
            raise LookupError("of the handler's own")

    async with scheduler, scheduler.worker():
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match="of the handler's own"):
            await job.result(timeout=20)


async def test_a_nested_transaction_of_asyncpg_is_a_savepoint(postgres_url: str) -> None:
    scheduler = Scheduler(postgres_url)

    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction() as tx:
            async with tx.connection.transaction():
                await tx.connection.execute("INSERT INTO effects VALUES (1)")
            with contextlib.suppress(ZeroDivisionError):
                async with tx.connection.transaction():
                    await tx.connection.execute("INSERT INTO effects VALUES (2)")
                    raise ZeroDivisionError

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        await (await effect.enqueue()).result(timeout=20)
        assert await effects(scheduler) == [1]


async def test_a_statement_that_failed_unnoticed_fails_the_job(postgres_url: str) -> None:
    scheduler = Scheduler(postgres_url)

    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction() as tx:
            await tx.connection.execute("INSERT INTO effects VALUES (1)")
            with contextlib.suppress(asyncpg.DivisionByZeroError):
                await tx.connection.execute("SELECT 1 / 0")

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match="a statement failed in the transaction"):
            await job.result(timeout=20)
        assert await effects(scheduler) == []


async def test_a_plain_function_has_its_transaction_with_with(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)

    @scheduler.task(name="effect", retries=[0])
    def effect() -> str:
        with current_job().transaction() as tx:
            tx.connection.execute("INSERT INTO effects VALUES (?)", (current_job().attempt,))
            if current_job().attempt == 1:
                raise ZeroDivisionError
            follow.options(tx=tx, delay=3600).sync.enqueue()
            tx.result = "done"
        return "not this"

    @scheduler.task(name="follow")
    def follow() -> None:
        pass

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        assert await (await effect.enqueue()).result(timeout=20) == "done"
        assert await effects(scheduler) == [2]
        assert len(await scheduler.jobs.list(task="follow")) == 1


async def test_a_job_enqueued_beside_the_transaction_of_the_only_writer_is_refused_at_once(
    sqlite_url: str, tmp_path: Path
) -> None:
    scheduler, elsewhere = Scheduler(sqlite_url), Scheduler(f"sqlite:///{tmp_path / 'elsewhere.db'}")

    @scheduler.task(name="follow")
    async def follow() -> None:
        pass

    @elsewhere.task(name="follow")
    async def follow_elsewhere() -> None:
        pass

    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction():
            await follow_elsewhere.enqueue()
            with pytest.raises(TransactionMisused, match=r"options\(tx=tx\)"):
                await asyncio.create_task(follow.enqueue())
        await follow.options(delay=3600).enqueue()

    @scheduler.task(name="plain")
    def plain() -> None:
        with current_job().transaction():
            with pytest.raises(TransactionMisused, match=r"options\(tx=tx\)"):
                follow.sync.enqueue()
            with pytest.raises(TransactionMisused, match=r"enqueue_many"):
                scheduler.sync.enqueue_many([follow.call()])
        follow.options(delay=3600).sync.enqueue()

    async with elsewhere, scheduler, scheduler.worker():
        for task in (effect, plain):
            await (await task.enqueue()).result(timeout=20)
        await until(lambda: _stored(scheduler, 2), what="those that were enqueued after the blocks")
        assert len(await elsewhere.jobs.list()) == 1


async def _stored(scheduler: Scheduler, count: int) -> bool:
    return len(await scheduler.jobs.list(task="follow")) == count


async def test_a_job_enqueued_beside_a_transaction_of_postgresql_is_stored_whatever_comes_of_that(
    postgres_url: str,
) -> None:
    scheduler = Scheduler(postgres_url)

    @scheduler.task(name="follow")
    async def follow() -> None:
        pass

    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction():
            await follow.enqueue()
            raise ZeroDivisionError

    async with scheduler, scheduler.worker():
        with pytest.raises(JobFailed):
            await (await effect.enqueue()).result(timeout=20)
        assert await _stored(scheduler, 1)


async def test_a_thread_that_keeps_the_only_writer_too_long_loses_it(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    seen: list[BaseException] = []

    @scheduler.task(name="effect")
    def effect() -> None:
        with current_job().transaction(timeout=0.2) as tx:
            tx.connection.execute("INSERT INTO effects VALUES (1)")
            while not seen:
                try:
                    tx.connection.execute("INSERT INTO effects VALUES (2)")
                except sqlite3.OperationalError as error:
                    seen.append(error)
                time.sleep(0.01)

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match="TimeoutError"):
            await job.result(timeout=20)
        assert await effects(scheduler) == []
        assert await effect_elsewhere(scheduler)


async def test_a_thread_that_never_leaves_its_block_does_not_keep_others_from_theirs(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    inside, gate = threading.Event(), threading.Event()

    @scheduler.task(name="stuck")
    def stuck() -> None:
        with current_job().transaction(timeout=0.1):
            inside.set()
            gate.wait(30)

    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction():
            pass

    async with scheduler, scheduler.worker():
        first = await stuck.enqueue()
        await until(inside.is_set, what="the only writer")
        await (await effect.enqueue()).result(timeout=20)
        assert not (await first.record()).state.terminal
        gate.set()
        with pytest.raises(JobFailed, match="TimeoutError"):
            await first.result(timeout=20)


async def test_a_plain_function_is_told_that_postgresql_needs_an_async_one(postgres_url: str) -> None:
    scheduler = Scheduler(postgres_url)

    @scheduler.task(name="effect")
    def effect() -> None:
        with current_job().transaction():
            pass

    async with scheduler, scheduler.worker():
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match=r"Unsupported: .*async with"):
            await job.result(timeout=20)


async def test_a_transaction_used_in_the_wrong_way_says_which_is_right(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    seen: list[str] = []

    @scheduler.task(name="effect")
    async def effect() -> None:
        job = current_job()
        with pytest.raises(BlockingCallInLoop, match="async with"), job.transaction():
            pass
        with pytest.raises(InvalidOption, match="longer than 0"):
            job.transaction(timeout=0)
        with pytest.raises(InvalidOption, match="at most 10 seconds"):
            async with job.transaction(timeout=11):
                pass
        with pytest.raises(TransactionMisused, match="inside its block"):
            _ = job.transaction().connection
        await asyncio.to_thread(wrong)
        seen.append("all")

    def wrong() -> None:
        async def inside() -> None:
            with pytest.raises(Unsupported, match="plain function write `with`"):
                async with current_job().transaction():
                    pass

        asyncio.run(inside())

    async with scheduler, scheduler.worker():
        await (await effect.enqueue()).result(timeout=20)
    assert seen == ["all"]


async def test_a_database_in_memory_lends_nothing() -> None:
    scheduler = Scheduler("sqlite://")

    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction():
            pass

    async with scheduler, scheduler.worker():
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match=r"Unsupported: .* use a file"):
            await job.result(timeout=20)
