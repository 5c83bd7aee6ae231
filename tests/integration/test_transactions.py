"""What a handler writes in its transaction and the end of its job are committed together, and once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from duetime import Ended, EventKind, Scheduler, State, current_job, failpoints
from duetime.model.outcome import Settlement
from duetime.stores.sql.settling import SqlHandlerTransaction
from tests.integration.effects import ask, effects, run
from tests.integration.kit import until


@pytest.fixture
def scheduler(sql_url: str) -> Scheduler:
    return Scheduler(sql_url)


@pytest.fixture(autouse=True)
def unarmed() -> Iterator[None]:
    yield
    failpoints.arm(None)


@pytest.mark.covers("effect-and-completion")
async def test_writes_and_the_end_of_the_job_are_committed_together(scheduler: Scheduler) -> None:
    seen: list[Any] = []

    @scheduler.task(name="effect")
    async def effect(n: int) -> str:
        job = current_job()
        # To look from outside is to connect anew, which takes its time on a busy machine.
        async with job.transaction(timeout=10) as tx:
            await run(tx.connection, f"INSERT INTO effects VALUES ({n})")
            seen.append(await effects(scheduler))
            seen.append((await scheduler.jobs.get(job.id)).state)
            tx.result = "done"
        seen.append(await effects(scheduler))
        seen.append((await scheduler.jobs.get(job.id)).state)
        return "not this"

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue(1)
        assert await job.result(timeout=20) == "done"
        await until(lambda: len(seen) == 4, what="the end of the handler")
        record = await job.record()
    assert seen == [[], State.RUNNING, [1], State.SUCCEEDED]
    assert (record.attempt, record.error) == (1, None)


@pytest.mark.covers("effect-and-completion")
async def test_what_happens_after_the_block_changes_nothing(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    @scheduler.task(name="effect", retries=3)
    async def effect() -> int:
        async with current_job().transaction() as tx:
            tx.result = 7
        raise LookupError("too late")

    with caplog.at_level(logging.WARNING, logger="duetime.worker"):
        async with scheduler, scheduler.worker():
            job = await effect.enqueue()
            assert await job.result(timeout=20) == 7
        async with scheduler:
            record = await job.record()
            assert await scheduler.store.attempts(job.id) == []
    assert (record.state, record.result, record.error) == (State.SUCCEEDED, 7, None)
    assert "changes nothing" in caplog.text
    assert "too late" in caplog.text


@pytest.mark.covers("effect-and-completion")
async def test_a_commit_whose_answer_is_lost_is_looked_up(scheduler: Scheduler) -> None:
    ends: list[int] = []

    @scheduler.task(name="effect", retries=3)
    async def effect() -> None:
        async with current_job().transaction() as tx:
            await run(tx.connection, "INSERT INTO effects VALUES (1)")
            failpoints.arm("after:transaction:raise")
        ends.append(current_job().attempt)

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        await job.result(timeout=20)
        assert await effects(scheduler) == [1]
        assert await scheduler.store.attempts(job.id) == []
    assert ends == [1], "the handler was told that its commit had failed"


@pytest.mark.covers("effect-and-completion")
async def test_a_request_to_stop_that_comes_after_the_commit_changes_nothing(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed, gate = asyncio.Event(), asyncio.Event()
    complete = SqlHandlerTransaction.complete

    async def complete_slowly(self: SqlHandlerTransaction, settlement: Settlement) -> None:
        await complete(self, settlement)
        committed.set()
        await gate.wait()

    monkeypatch.setattr(SqlHandlerTransaction, "complete", complete_slowly)
    heard: list[str] = []
    kinds = [kind for kind in EventKind if kind.startswith("job.")]
    scheduler.events.subscribe(lambda event: heard.append(event.kind), *kinds)

    @scheduler.task(name="effect", retries=3)
    async def effect() -> None:
        async with current_job().transaction() as tx:
            tx.result = 7

    async with scheduler, scheduler.worker() as worker:
        job = await effect.enqueue()
        await committed.wait()
        worker.stop_job(job.id, "by hand")
        await asyncio.sleep(0)
        gate.set()
        await until(lambda: len(heard) == 2, what="the end")
        record = await job.record()
    assert heard == ["job.started", "job.succeeded"]
    assert (record.state, record.result) == (State.SUCCEEDED, 7)


@pytest.mark.covers("effect-and-completion")
async def test_a_commit_that_did_not_happen_is_tried_again_with_all_its_writes(scheduler: Scheduler) -> None:
    @scheduler.task(name="effect", retries=[0])
    async def effect() -> None:
        async with current_job().transaction() as tx:
            await run(tx.connection, f"INSERT INTO effects VALUES ({current_job().attempt})")
            failpoints.arm("before:transaction:raise" if current_job().attempt == 1 else None)

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        job = await effect.enqueue()
        await job.result(timeout=20)
        assert await effects(scheduler) == [2]
        assert [attempt.outcome for attempt in await scheduler.store.attempts(job.id)] == ["error"]


@pytest.mark.covers("effect-and-completion")
async def test_jobs_enqueued_in_the_transaction_share_its_fate(scheduler: Scheduler) -> None:
    @scheduler.task(name="follow")
    async def follow(attempt: int) -> int:
        return attempt

    @scheduler.task(name="effect", retries=[0])
    async def effect() -> str:
        async with current_job().transaction() as tx:
            handle = await follow.options(tx=tx).enqueue(current_job().attempt)
            if current_job().attempt == 1:
                raise ZeroDivisionError
            await follow.options(tx=tx.connection, delay=3600).enqueue(0)
            tx.result = handle.id
        return "not this"

    async with scheduler, scheduler.worker():
        job = await effect.enqueue()
        follower = await job.result(timeout=20)
        record = await until(lambda: ended(scheduler, follower), what="the follower")
        assert record.result == 2
        assert len(await scheduler.jobs.list(task="follow")) == 2


@pytest.mark.covers("callback-lost")
async def test_the_callback_of_a_job_is_stored_with_its_transaction(scheduler: Scheduler) -> None:
    called: list[object] = []

    @scheduler.task(name="tell")
    async def tell(ended: Ended) -> None:
        called.append(ended.result)

    @scheduler.task(name="effect", on_success=tell)
    async def effect() -> int:
        async with current_job().transaction() as tx:
            tx.result = 7
        return -1

    async with scheduler, scheduler.worker():
        await effect.enqueue()
        await until(lambda: called, what="the callback")
    assert called == [7]


async def ended(scheduler: Scheduler, job_id: str) -> Any:
    record = await scheduler.jobs.get(job_id)
    return record if record.state.terminal else None


async def test_many_handlers_get_their_transactions_one_after_the_other(scheduler: Scheduler) -> None:
    @scheduler.task(name="effect")
    async def effect(n: int) -> None:
        async with current_job().transaction() as tx:
            await run(tx.connection, f"INSERT INTO effects VALUES ({n})")

    async with scheduler, scheduler.worker():
        await ask(scheduler, "CREATE TABLE effects (n integer)")
        jobs = await scheduler.enqueue_many([effect.call(n) for n in range(40)])
        for job in jobs:
            await job.result(timeout=30)
        assert await effects(scheduler) == list(range(40))
