"""Code around jobs, and code that hears of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from duetime import Event, JobContext, Scheduler, Snooze
from duetime.errors import JobFailed
from tests.integration.kit import until


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


async def test_middleware_is_around_every_job_of_a_worker(scheduler: Scheduler) -> None:
    seen: list[str] = []

    @scheduler.middleware
    async def note(job: JobContext, call: Callable[[], Awaitable[object]]) -> object:
        seen.append(job.task)
        if job.task == "refused":
            raise PermissionError("not this one")
        return await call()

    @scheduler.task(name="loop")
    async def loop() -> str:
        return "loop"

    @scheduler.task(name="thread")
    def thread() -> str:
        return "thread"

    @scheduler.task(name="refused")
    async def refused() -> None:
        raise AssertionError("called")

    async with scheduler, scheduler.worker():
        for task in (loop, thread):
            assert await (await task.enqueue()).result(timeout=20) == task.name
        job = await refused.enqueue()
        with pytest.raises(JobFailed, match="PermissionError: not this one") as failure:
            await job.result(timeout=20)
    assert seen == ["loop", "thread", "refused"]
    assert failure.value.traceback is not None
    assert "in note\n" in failure.value.traceback


async def test_events_tell_the_life_of_jobs_and_workers(scheduler: Scheduler) -> None:
    told: list[Event] = []
    scheduler.events.subscribe(told.append)
    tries = 0

    @scheduler.task(name="unlucky", retries=[0.01])
    async def unlucky() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise Snooze(0.01)
        raise LookupError("boom")

    @scheduler.task(name="endless")
    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    begun = asyncio.Event()
    async with scheduler, scheduler.worker() as worker:
        job = await unlucky.enqueue()
        with pytest.raises(JobFailed):
            await job.result(timeout=20)
        other = await endless.enqueue()
        await asyncio.wait_for(begun.wait(), 20)
        await scheduler.jobs.cancel(other.id, reason="off")
        await until(lambda: told[-1].kind == "job.cancelled", what=lambda: str(told))

    kinds = [event.kind.value for event in told if event.job in (None, job.id)]
    assert kinds == [
        "worker.started",
        "job.started", "job.snoozed",
        "job.started", "job.retrying",
        "job.started", "job.failed",
        "worker.stopped",
    ]  # fmt: skip
    assert {event.worker for event in told} == {worker.id}
    failed = next(event for event in told if event.kind == "job.failed")
    assert (failed.task, failed.queue, failed.attempt) == ("unlucky", "default", 2)
    assert (failed.error, failed.reason) == ("LookupError: boom", "error")
    assert [event.kind for event in told if event.job == other.id] == ["job.started", "job.cancelled"]


async def test_an_event_is_told_once_the_store_has_accepted_it(scheduler: Scheduler) -> None:
    states: list[str] = []

    async def look(event: Event) -> None:
        assert event.job is not None
        states.append((await scheduler.jobs.get(event.job)).state)

    scheduler.events.subscribe(look, "job.succeeded")

    @scheduler.task(name="quick")
    async def quick() -> None: ...

    async with scheduler, scheduler.worker():
        await quick.enqueue()
        await until(lambda: states, what="the event")
    assert states == ["succeeded"]


async def test_a_run_whose_claim_was_taken_away_is_told_as_lost(scheduler: Scheduler) -> None:
    told: asyncio.Queue[Event] = asyncio.Queue()
    scheduler.events.subscribe(told.put_nowait, "job.lost")
    begun, go_on = asyncio.Event(), asyncio.Event()

    @scheduler.task(name="stubborn")
    async def stubborn() -> None:
        if not begun.is_set():
            begun.set()
            await asyncio.wait_for(go_on.wait(), 20)

    async with scheduler, scheduler.worker():
        job = await stubborn.enqueue()
        await asyncio.wait_for(begun.wait(), 20)
        await scheduler.queues.pause("default")
        await scheduler.jobs.release(job.id, force=True)
        go_on.set()
        event = await asyncio.wait_for(told.get(), 20)
    assert (event.job, event.attempt) == (job.id, 1)
