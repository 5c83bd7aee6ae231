"""A worker that is asked to stop: drains, then cancels and records."""

from __future__ import annotations

import asyncio
from functools import partial
from signal import SIGTERM

import pytest

from duetime import Scheduler
from duetime.errors import NotOpen
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.runtime.upkeep.lease import LeaseTiming
from duetime.stores.base import Store
from tests.integration.kit import Fleet, Gate, WorkerProcess, until
from tests.integration.tasks import wait_in_thread


async def read(store: Store, job_id: str) -> StoredJob:
    return (await store.get([job_id]))[0]


async def is_draining(worker: WorkerProcess) -> None:
    await until(lambda: "waiting up to" in worker.log, what="the drain")


@pytest.mark.covers("graceful-stop")
async def test_running_jobs_finish_and_nothing_new_begins(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        worker = await fleet.start()
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        worker.signal(SIGTERM)
        await is_draining(worker)
        late = await app.note.enqueue()
        gate.open()
        await fleet.entry("stopped", pid=worker.pid)
        record = await read(store, job.id)
        assert (await read(store, late.id)).state is State.PENDING
        assert [known.state for known in await store.workers()] == ["stopped"]

    assert (record.state, record.result) == (State.SUCCEEDED, str(worker.pid))


@pytest.mark.covers("graceful-stop")
async def test_a_stop_that_its_caller_gives_up_on_goes_on_with_the_store_open(store_url: str) -> None:
    scheduler, begun, end = Scheduler(store_url), asyncio.Event(), asyncio.Event()

    @scheduler.task(name="work")
    async def work() -> str:
        begun.set()
        await end.wait()
        return "done"

    worker = scheduler.worker(grace="20s")
    await worker.__aenter__()
    job = await work.enqueue()
    await begun.wait()
    leaving = asyncio.ensure_future(worker.__aexit__(None, None, None))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    end.set()
    async with Scheduler(store_url) as other:

        async def is_recorded() -> bool:
            return (await read(other.store, job.id)).state is State.SUCCEEDED

        await until(is_recorded, what="the outcome")
    await until(lambda: not scheduler.is_open, what="the end of the stop")


@pytest.mark.covers("graceful-stop", "nobody-gives-back")
async def test_past_the_grace_time_an_async_job_is_cancelled_and_waits_for_another_worker(
    fleet: Fleet,
) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        worker = await fleet.start(grace="100ms")
        job = await app.wait_for.enqueue(gate.path)
        once = await app.wait_for_once.enqueue(gate.path)
        for handle in (job, once):
            await fleet.entry("start", job=handle.id)
        worker.signal(SIGTERM)
        await fleet.entry("cancelled", job=job.id)
        await fleet.entry("stopped", pid=worker.pid)
        record, ended = await read(store, job.id), await read(store, once.id)
        [interrupted] = await store.attempts(job.id)
        gate.open()
        heir = await fleet.start()
        assert await job.result(timeout=20) == heir.pid

    assert (record.state, record.failures, record.crashes) == (State.PENDING, 0, 0)
    assert interrupted.outcome == "interrupted"
    assert interrupted.started_at is not None
    assert ended.state is State.CANCELLED
    assert ended.reason is not None
    assert "stopped" in ended.reason


@pytest.mark.covers("graceful-stop")
async def test_a_second_signal_cuts_the_grace_time_short(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        worker = await fleet.start(grace="1h")
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        worker.signal(SIGTERM)
        await is_draining(worker)
        worker.signal(SIGTERM)
        await fleet.entry("stopped", pid=worker.pid)
        assert (await read(app.scheduler.store, job.id)).state is State.PENDING


@pytest.mark.covers("thread-outlives-stop")
async def test_nobody_else_starts_a_job_whose_thread_has_not_ended(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        worker = await fleet.start(grace="50ms", lease="3s")
        job = await app.wait_in_thread.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        await fleet.start(lease="3s")
        worker.signal(SIGTERM)
        await until(
            lambda: "1 job did not end" in worker.log, what="the report of a thread that does not end"
        )
        assert (await read(store, job.id)).state is State.RUNNING
        assert len(fleet.ledger.entries("start", job=job.id)) == 1
        gate.open()
        record = (await fleet.ended(store, [job.id]))[job.id]

    assert record.state is State.SUCCEEDED


@pytest.mark.covers("thread-outlives-stop")
async def test_a_thread_that_ends_after_the_worker_was_stopped_is_still_recorded(
    store_url: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An embedded worker stops while its process lives on: the thread is waited for in the background."""
    # Often, under a long lease: none is lost on a machine that stalls.
    monkeypatch.setattr(LeaseTiming, "beat", 0.5)
    scheduler = Scheduler(store_url)
    task = scheduler.task(name="wait_in_thread")(wait_in_thread)
    gate: Gate = fleet.gate()
    async with scheduler:
        async with scheduler.worker(grace="50ms", lease="1h") as worker:
            job = await task.enqueue(gate.path)
            await fleet.entry("start", job=job.id)
        [known] = await scheduler.store.workers()
        assert known.state == "alive", "its claim would be free for others"

        async def renewed() -> bool:
            return (await scheduler.store.workers())[0].lease_until > known.lease_until

        await until(renewed, what="a lease that is kept")
        gate.open()
        record = (await fleet.ended(scheduler.store, [job.id]))[job.id]

        async def signed_off() -> bool:
            return (await scheduler.store.workers())[0].state == "stopped"

        await until(signed_off, what="the end of the worker")
    await until(partial(_is_closed, scheduler), what="the end of its connections")

    assert (record.state, record.crashes, record.worker) == (State.SUCCEEDED, 0, worker.id)


def _is_closed(scheduler: Scheduler) -> bool:
    try:
        _ = scheduler.store
    except NotOpen:
        return True
    return False
