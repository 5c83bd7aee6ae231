"""A handler's transaction may end after its run has: in a thread that nobody can stop, or a task that was left behind."""

from __future__ import annotations

import asyncio
import threading

import pytest

from duetime import Scheduler, current_job
from duetime.errors import ClaimLost, JobFailed
from tests.integration.effects import ask, effect_elsewhere, effects, run
from tests.integration.kit import until


async def left() -> None:
    """Wait until no run of the task is left in the worker, which may not be able to record its end yet."""
    await until(
        lambda: "effect" not in {task.get_name() for task in asyncio.all_tasks()}, what="the end of the run"
    )


@pytest.mark.covers("effect-and-completion")
async def test_a_block_in_a_thread_that_ends_after_its_run_is_committed_and_lets_others_write(
    sqlite_url: str,
) -> None:
    scheduler = Scheduler(sqlite_url)
    inside, gate = threading.Event(), threading.Event()
    threads: list[asyncio.Future[None]] = []

    def work() -> None:
        with current_job().transaction(timeout=10) as tx:
            tx.connection.execute("INSERT INTO effects VALUES (1)")
            inside.set()
            gate.wait(30)

    @scheduler.task(name="effect")
    async def effect() -> None:
        threads.append(asyncio.ensure_future(asyncio.to_thread(work)))
        assert await asyncio.to_thread(inside.wait, 30)
        raise ZeroDivisionError

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        await until(inside.is_set, what="the only writer")
        await left()
        gate.set()
        await threads[0]
        assert await effects(scheduler) == [1]
        assert await effect_elsewhere(scheduler)
        # Whose success was committed first: the failure came too late to change anything.
        await job.result(timeout=20)


@pytest.mark.covers("effect-and-completion")
async def test_a_block_that_begins_after_its_run_has_ended_loses_its_claim_and_leaves_nothing(
    sql_url: str,
) -> None:
    scheduler = Scheduler(sql_url)
    gate = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def work() -> None:
        await gate.wait()
        async with current_job().transaction() as tx:
            await run(tx.connection, "INSERT INTO effects VALUES (1)")

    @scheduler.task(name="effect")
    async def effect() -> None:
        tasks.append(asyncio.create_task(work()))
        raise ZeroDivisionError

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        with pytest.raises(JobFailed, match="ZeroDivisionError"):
            await (await effect.enqueue()).result(timeout=20)
        await left()
        gate.set()
        with pytest.raises(ClaimLost):
            await tasks[0]
        assert await effects(scheduler) == []
        assert await effect_elsewhere(scheduler)
