"""Jobs that are called off, whatever they are doing."""

from __future__ import annotations

import asyncio
import threading

import pytest

from duetime import Cancel, Scheduler, current_job
from duetime.errors import JobCancelled, JobNotFound, JobSkipped
from duetime.model.states import State
from duetime.stores.base import CancelAnswer
from tests.integration.kit import Fleet


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


@pytest.mark.covers("no-way-to-interfere")
async def test_running_jobs_are_cancelled_from_another_process(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        await fleet.start()
        in_loop = await app.wait_for.enqueue(gate.path)
        in_thread = await app.heed_in_thread.enqueue()
        for job in (in_loop, in_thread):
            await fleet.entry("start", job=job.id)
        answers = await app.scheduler.jobs.cancel_many([in_loop.id, in_thread.id, "nothing"], reason="off")
        records = await fleet.ended(app.scheduler.store, [in_loop.id, in_thread.id])

    assert answers == {
        in_loop.id: CancelAnswer.REQUESTED,
        in_thread.id: CancelAnswer.REQUESTED,
        "nothing": CancelAnswer.UNKNOWN,
    }
    assert {(record.state, record.reason) for record in records.values()} == {(State.CANCELLED, "off")}
    assert [entry.job for entry in fleet.ledger.entries("cancelled")] == [in_loop.id]


async def test_a_handler_with_a_grace_time_ends_in_its_own_way(scheduler: Scheduler) -> None:
    begun = asyncio.Event()
    finished: list[str] = []

    @scheduler.task(name="patient", cancel_grace="1h")
    async def patient() -> None:
        begun.set()
        while not current_job().cancel_requested:  # noqa: ASYNC110 - the flag is all it has
            await asyncio.sleep(0.005)
        finished.append("in peace")
        raise Cancel("half of it is done")

    async with scheduler, scheduler.worker():
        job = await patient.enqueue()
        await asyncio.wait_for(begun.wait(), 20)
        assert await scheduler.jobs.cancel(job.id, reason="off") is CancelAnswer.REQUESTED
        with pytest.raises(JobCancelled, match="off"):
            await job.result(timeout=20)
    assert finished == ["in peace"]


async def test_the_outcome_of_a_handler_that_goes_on_regardless_counts(scheduler: Scheduler) -> None:
    begun, go_on, swallowed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @scheduler.task(name="stubborn")
    async def stubborn() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.set()
        await go_on.wait()
        return "done anyway"

    @scheduler.task(name="other")
    async def other() -> None: ...

    async with scheduler, scheduler.worker(concurrency=1):
        job = await stubborn.enqueue()
        await asyncio.wait_for(begun.wait(), 20)
        await scheduler.jobs.cancel(job.id)
        await asyncio.wait_for(swallowed.wait(), 20)
        behind = await other.enqueue()
        assert (await scheduler.jobs.get(behind.id)).started_at is None, "its slot was given away"
        go_on.set()
        assert await job.result(timeout=20) == "done anyway"
        record = await job.record()
        await behind.result(timeout=20)

    assert (record.state, record.cancel_requested) == (State.SUCCEEDED, True)


async def test_a_plain_function_that_never_looks_ends_as_it_does(scheduler: Scheduler) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @scheduler.task(name="deaf", retries=3)
    def deaf() -> None:
        begun.set()
        assert go_on.wait(20)
        raise LookupError("nothing here")

    async with scheduler, scheduler.worker():
        job = await deaf.enqueue()
        assert await asyncio.to_thread(begun.wait, 20)
        await scheduler.jobs.cancel(job.id, reason="off")
        go_on.set()
        with pytest.raises(JobCancelled, match="off"):
            await job.result(timeout=20)
        [tried] = await scheduler.jobs.attempts(job.id)
        assert tried.error == "LookupError: nothing here"


async def test_what_has_ended_and_what_never_was_have_their_answers(scheduler: Scheduler) -> None:
    @scheduler.task(name="quick")
    async def quick() -> None: ...

    async with scheduler, scheduler.worker():
        job = await quick.enqueue()
        await job.result(timeout=20)
        assert await scheduler.jobs.cancel(job.id) is CancelAnswer.FINISHED
        with pytest.raises(JobNotFound, match="nothing"):
            await scheduler.jobs.cancel("nothing")


async def test_a_job_that_comes_too_late_is_skipped(scheduler: Scheduler) -> None:
    @scheduler.task(name="news", expires="1ms")
    async def news() -> None:
        raise AssertionError("nobody wants to hear it any more")

    async with scheduler:
        job = await news.options(delay=0).enqueue()
        await asyncio.sleep(0.005)
        async with scheduler.worker():
            with pytest.raises(JobSkipped, match="expired"):
                await job.result(timeout=20)
            record = await job.record()

    assert (record.state, record.reason, record.started_at) == (State.SKIPPED, "expired", None)
