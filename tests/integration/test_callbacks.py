"""Jobs that are called because others have ended: none lost, none twice, whoever dies in between."""

from __future__ import annotations

import asyncio

import pytest

from duetime import Ended, Scheduler, State, every
from duetime.errors import JobFailed
from duetime.model.stored.jobs import StoredJob
from duetime.stores.base import JobFilter
from tests.integration.kit import Fleet, until


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


async def called(scheduler: Scheduler, job_id: str) -> list[StoredJob]:
    """The jobs that were enqueued because another had ended."""
    return [job for job in await scheduler.store.find(JobFilter(limit=100)) if job.parent == job_id]


async def test_callbacks_hear_how_a_job_has_ended(scheduler: Scheduler) -> None:
    heard: asyncio.Queue[Ended] = asyncio.Queue()

    @scheduler.task(name="hear")
    async def hear(ended: Ended) -> None:
        await heard.put(ended)

    @scheduler.task(name="divide", on_success=hear, on_failure=hear, tags=["maths"])
    async def divide(number: int, by: int) -> float:
        return number / by

    @scheduler.task(name="wait", on_cancel=hear)
    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    begun = asyncio.Event()
    async with scheduler, scheduler.worker():
        job = await divide.enqueue(5, 2)
        ended = await asyncio.wait_for(heard.get(), 20)
        assert (ended.id, ended.task, ended.arguments) == (job.id, "divide", {"number": 5, "by": 2})
        assert (ended.state, ended.result, ended.error) == (State.SUCCEEDED, 2.5, None)
        assert (ended.tags, ended.attempt) == (("maths",), 1)
        assert ended.finished_at == (await job.record()).finished_at

        await divide.options(retries=0).enqueue(5, 0)
        ended = await asyncio.wait_for(heard.get(), 20)
        assert (ended.state, ended.error) == (State.FAILED, "ZeroDivisionError: division by zero")
        assert ended.traceback is not None

        running = await wait.enqueue()
        await asyncio.wait_for(begun.wait(), 20)
        pending = await wait.options(delay=3600).enqueue()
        for job_id in (running.id, pending.id):
            await scheduler.jobs.cancel(job_id, reason="off")
            ended = await asyncio.wait_for(heard.get(), 20)
            assert (ended.id, ended.state, ended.reason) == (job_id, State.CANCELLED, "off")
    assert heard.empty()


async def test_a_callback_that_fails_is_a_failed_job_and_calls_nobody(scheduler: Scheduler) -> None:
    @scheduler.task(name="last")
    async def last(ended: Ended) -> None:
        raise AssertionError("the chain goes on")

    @scheduler.task(name="alert", on_failure=last, retries=[0.01])
    async def alert(ended: Ended) -> None:
        raise LookupError("nobody to alert")

    @scheduler.task(name="fail", on_failure=alert)
    async def fail() -> None:
        raise ValueError("boom")

    async with scheduler, scheduler.worker():
        job = await fail.enqueue()
        with pytest.raises(JobFailed):
            await job.result(timeout=20)

        async def failed() -> list[StoredJob]:
            return [job for job in await called(scheduler, job.id) if job.state is State.FAILED]

        [callback] = await until(failed, what="the callback's own failure")
        assert (callback.error, callback.failures) == ("LookupError: nobody to alert", 2)
        assert await called(scheduler, callback.id) == []


async def test_the_jobs_of_a_schedule_call_back(scheduler: Scheduler) -> None:
    heard: asyncio.Queue[Ended] = asyncio.Queue()

    @scheduler.task(name="hear")
    async def hear(ended: Ended) -> None:
        await heard.put(ended)

    @scheduler.schedule(every("1s"), name="often")
    @scheduler.task(name="beat", on_success=hear)
    async def beat() -> None: ...

    async with scheduler, scheduler.worker():
        ended = await asyncio.wait_for(heard.get(), 20)
    assert (ended.task, ended.schedule) == ("beat", "often")


@pytest.mark.parametrize("place", ["before:settle", "within:settle", "after:settle"])
@pytest.mark.covers("callback-lost")
async def test_a_death_between_a_result_and_its_callback_loses_nothing_and_doubles_nothing(
    fleet: Fleet, place: str
) -> None:
    app = fleet.app()
    async with app.scheduler:
        job = await app.telling.enqueue()
        victim = await fleet.start(failpoint=f"{place}:kill")
        await until(lambda: victim.ended, what="the failpoint")
        written = (await app.scheduler.store.get([job.id]))[0].state is State.SUCCEEDED
        enqueued = await called(app.scheduler, job.id)
        assert (written, len(enqueued)) == ((True, 1) if place == "after:settle" else (False, 0))
        await fleet.start()
        await fleet.entry("told-succeeded", job=job.id)
        [callback] = await called(app.scheduler, job.id)
        await fleet.ended(app.scheduler.store, [job.id, callback.id])

    assert len(fleet.ledger.entries("told-succeeded", job=job.id)) == 1


@pytest.mark.timeout(90)
@pytest.mark.covers("callback-lost")
async def test_a_job_that_crashes_its_workers_still_calls_back(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        once = await app.telling_once.enqueue()
        victim = await fleet.start()
        await until(lambda: victim.ended, what="its death")
        again = await app.telling_death.enqueue()

        async def told() -> bool:
            if all(worker.ended for worker in fleet.workers):
                await fleet.start(lease="2s")
            return len(fleet.ledger.entries("told-failed")) == 2

        await until(told, within=60, what="the callbacks of crashed jobs")
        records = await fleet.ended(app.scheduler.store, [once.id, again.id])

    assert [records[job.id].reason for job in (once, again)] == ["crashed", "crashed"]
    # A crash beside the callback of the first job blames nobody, so there may be one more.
    assert (records[once.id].crashes, records[again.id].blames) == (1, 3)
    assert {entry.job for entry in fleet.ledger.entries("told-failed")} == {once.id, again.id}
