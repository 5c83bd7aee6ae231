"""A transaction that fails, ends otherwise or takes too long leaves nothing behind, and nobody takes it for a success."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from typing import Any
from unittest.mock import ANY

import pytest

from duetime import Scheduler, State, current_job
from duetime.errors import (
    ClaimLost,
    JobCancelled,
    JobFailed,
    TransactionMisused,
)
from tests.integration.effects import ask, effect_elsewhere, effects, run
from tests.integration.kit import until


@pytest.fixture
def scheduler(sql_url: str) -> Scheduler:
    return Scheduler(sql_url)


@pytest.mark.covers("own-error-kept")
async def test_an_error_in_the_block_rolls_back_and_is_the_error_on_record(scheduler: Scheduler) -> None:
    @scheduler.task(name="effect", retries=[0.01])
    async def effect() -> None:
        async with current_job().transaction() as tx:
            await run(tx.connection, "INSERT INTO effects VALUES (1)")
            if current_job().attempt == 1:
                raise LookupError("of the handler's own")

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        await job.result(timeout=20)
        [lost] = await scheduler.store.attempts(job.id)
        record = await job.record()
        assert await effects(scheduler) == [1]
    assert (lost.outcome, lost.error) == ("error", "LookupError: of the handler's own")
    assert (record.state, record.attempt) == (State.SUCCEEDED, 2)


@pytest.mark.covers("lent-transaction-ended")
@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK", "COMMIT; BEGIN", "close"])
@pytest.mark.parametrize("then", ["return", "raise", "swallow"])
async def test_a_handler_that_ends_its_transaction_has_failed_for_good(
    scheduler: Scheduler, how: str, then: str
) -> None:
    async def misuse(connection: Any) -> None:
        await run(connection, "INSERT INTO effects VALUES (1)")
        if how == "close":
            closing = connection.close()
            await closing if inspect.isawaitable(closing) else closing
        else:
            for sql in how.split(";"):
                await run(connection, sql)
        if then == "raise":
            raise LookupError("of the handler's own")

    @scheduler.task(name="effect", retries=3)
    async def effect() -> None:
        try:
            async with current_job().transaction() as tx:
                await misuse(tx.connection)
        except TransactionMisused:
            if then != "swallow":
                raise

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match=r"TransactionMisused: .* may have been committed"):
            await job.result(timeout=20)
        record = await job.record()
        assert await effects(scheduler) == ([1] if how.startswith("COMMIT") else [])
        assert await effect_elsewhere(scheduler)
    assert (record.state, record.reason, record.attempt) == (State.FAILED, "misused", 1)


async def test_a_job_has_one_transaction(scheduler: Scheduler) -> None:
    @scheduler.task(name="effect")
    async def effect() -> None:
        job = current_job()
        with contextlib.suppress(ZeroDivisionError):
            async with job.transaction():
                raise ZeroDivisionError
        async with current_job().transaction():
            pass

    async with scheduler, scheduler.worker():
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match="a job has one transaction"):
            await job.result(timeout=20)


async def test_a_transaction_that_takes_too_long_is_rolled_back(scheduler: Scheduler) -> None:
    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction(timeout=0.2) as tx:
            await run(tx.connection, "INSERT INTO effects VALUES (1)")
            await asyncio.sleep(30)

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match=r"TimeoutError: .* longer than 200 milliseconds.*rolled back"):
            await job.result(timeout=20)
        assert await effects(scheduler) == []
        assert await effect_elsewhere(scheduler)


async def test_a_handler_that_makes_little_of_a_rollback_has_not_succeeded(scheduler: Scheduler) -> None:
    @scheduler.task(name="effect", retries=[0])
    async def effect() -> str:
        try:
            async with current_job().transaction(timeout=0.1 if current_job().attempt == 1 else 5) as tx:
                await run(tx.connection, f"INSERT INTO effects VALUES ({current_job().attempt})")
                if current_job().attempt == 1:
                    await asyncio.sleep(30)
        except TimeoutError:
            return "as if nothing had been"
        return ""

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        await job.result(timeout=20)
        [late] = await scheduler.store.attempts(job.id)
        assert await effects(scheduler) == [2]
    assert (late.outcome, late.error) == ("timeout", ANY)
    assert str(late.error).startswith(
        "TimeoutError: the transaction was open for longer than 100 milliseconds"
    )


async def test_a_block_that_never_lets_the_loop_interrupt_it_is_rolled_back_all_the_same(
    scheduler: Scheduler,
) -> None:
    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction(timeout=0.1) as tx:
            await run(tx.connection, "INSERT INTO effects VALUES (1)")
            time.sleep(0.3)  # noqa: ASYNC251 - the offence is the point

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match="TimeoutError"):
            await job.result(timeout=20)
        assert await effects(scheduler) == []


@pytest.mark.parametrize("what", ["deleted", "claimed anew"])
@pytest.mark.covers("vanished-job")
async def test_a_run_whose_claim_is_lost_leaves_nothing_behind(scheduler: Scheduler, what: str) -> None:
    seen: list[BaseException] = []
    change = "DELETE FROM duetime_jobs" if what == "deleted" else "UPDATE duetime_jobs SET fence = fence + 1"

    @scheduler.task(name="effect")
    async def effect() -> None:
        await ask(scheduler, change)
        try:
            async with current_job().transaction() as tx:
                await run(tx.connection, "INSERT INTO effects VALUES (1)")
        except ClaimLost as error:
            seen.append(error)
            raise

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        await until(lambda: bool(seen), what="the loss")
        assert await effects(scheduler) == []
        assert await effect_elsewhere(scheduler)
        left = [await ask(scheduler, f"SELECT job_id FROM duetime_{table}") for table in ("attempts", "logs")]
        found = await scheduler.store.get([job.id])
    assert left == [[], []]
    assert [record.state for record in found] == ([] if what == "deleted" else [State.RUNNING])


@pytest.mark.covers("cancelled-in-transaction")
async def test_a_job_cancelled_inside_its_transaction_gives_everything_back(scheduler: Scheduler) -> None:
    inside = asyncio.Event()

    @scheduler.task(name="effect")
    async def effect() -> None:
        async with current_job().transaction(timeout=10) as tx:
            await run(tx.connection, "INSERT INTO effects VALUES (1)")
            inside.set()
            await asyncio.sleep(30)

    async with scheduler, scheduler.worker() as worker:
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        await inside.wait()
        await scheduler.jobs.cancel(job.id) if others_write(scheduler) else worker.stop_job(job.id, "by hand")
        with pytest.raises(JobCancelled):
            await job.result(timeout=20)
        assert await effects(scheduler) == []
        assert await effect_elsewhere(scheduler)
        assert worker.stats().running == 0


def others_write(scheduler: Scheduler) -> bool:
    """Whether a request can be stored meanwhile; on SQLite the handler is the only writer."""
    return not scheduler.url.startswith("sqlite")
