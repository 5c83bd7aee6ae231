"""Jobs hold the lock that their task names: one at a time, and never while code that takes the lock itself has it."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from duetime import Event, Job, Scheduler, current_job
from duetime.errors import JobFailed, LockMisused, StoreUnavailable
from duetime.locks import Attempt, open_lock
from duetime.locks.stored import StoreLock
from duetime.model.job import JobEdit
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import HOUR, MINUTE, from_datetime
from duetime.runtime.worker import Worker
from tests.integration import cpu_tasks
from tests.integration.kit import Fleet, until
from tests.integration.ledger import Entry
from tests.integration.tasks import heed_in_thread, spin

PROCESSES = 4
TENANTS = 5
JOBS = 100
FOR_EVER = 3_600
"""A time to live, in seconds, that no test waits for."""


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


async def read(scheduler: Scheduler, job_id: str) -> StoredJob:
    return (await scheduler.store.get([job_id]))[0]


async def given_back(scheduler: Scheduler, job_id: str) -> StoredJob:
    """Wait until a worker has found the lock of a job held."""

    async def found() -> bool:
        job = await read(scheduler, job_id)
        return job.state is State.PENDING and job.fence > 0

    await until(found, what="a claim that was given back")
    return await read(scheduler, job_id)


class Gated:
    """A task with a lock, whose runs wait for the test."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.runs = 0
        self.task = scheduler.task(name="reindex", lock="reindex:{tenant}")(self._made())

    def _made(self) -> Callable[..., Any]:
        async def reindex(tenant: str) -> int | None:
            self.runs += 1
            self.begun.set()
            await self.go_on.wait()
            return current_job().lock_fence

        return reindex


@pytest.mark.timeout(180)
async def test_jobs_of_one_lock_run_one_at_a_time_over_all_processes(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        await fleet.start_many(PROCESSES, concurrency=10)
        calls = [app.reindex.call(f"tenant {number % TENANTS}") for number in range(JOBS)]
        handles = await app.scheduler.enqueue_many(calls)
        tenants = {handle.id: number % TENANTS for number, handle in enumerate(handles)}
        records = await fleet.ended(app.scheduler.store, list(tenants), within=120)
        tries = [await app.scheduler.store.attempts(job_id) for job_id in tenants]
        assert await app.scheduler.locks.list() == []

    assert {(record.state, record.attempt) for record in records.values()} == {(State.SUCCEEDED, 1)}
    assert not any(tries), "a claim that was given back is no attempt"
    story: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in fleet.ledger.entries():
        if entry.job in tenants:
            story[tenants[entry.job]].append(entry)
    for entries in story.values():
        pairs = list(zip(entries[::2], entries[1::2], strict=True))
        assert all(first.job == last.job for first, last in pairs), "two at once"
        fences = [int(records[first.job].result or 0) for first, _ in pairs]
        assert fences == sorted(set(fences))


async def test_a_job_waits_for_code_that_holds_its_lock_and_leaves_its_slot_to_others(
    scheduler: Scheduler,
) -> None:
    gated = Gated(scheduler)
    gated.go_on.set()

    @scheduler.task(name="other")
    async def other() -> None: ...

    async with scheduler, scheduler.worker(concurrency=1):
        async with scheduler.lock("reindex:a", ttl=FOR_EVER):
            job = await gated.task.enqueue("a")
            waiting = await given_back(scheduler, job.id)
            await (await other.enqueue()).result(timeout=20)
            assert gated.runs == 0
            assert waiting.reason == "lock reindex:a is held"
            story = await scheduler.jobs.explain(job.id)
            assert "Its lock reindex:a is held: it waits until that is released, or until" in str(story)
            # Due again some time before the deadline, should no one hear of the release.
            assert 0 < waiting.due_at - await scheduler.store.now() <= MINUTE
        assert await job.result(timeout=20) is not None
        record = await read(scheduler, job.id)
        assert (record.attempt, await scheduler.store.attempts(job.id)) == (1, [])
        # As if it had not waited.
        assert record.due_at == record.created_at


async def test_locks_of_jobs_may_be_kept_elsewhere(store_url: str, tmp_path: Path) -> None:
    elsewhere = f"file://{tmp_path}"
    scheduler = Scheduler(store_url, locks=elsewhere)
    gated = Gated(scheduler)
    gated.go_on.set()
    async with scheduler, scheduler.worker():
        async with open_lock(elsewhere, "reindex:a", ttl=FOR_EVER):
            job = await gated.task.enqueue("a")
            await given_back(scheduler, job.id)
            # Another name is another lock.
            await (await gated.task.enqueue("b")).result(timeout=20)
        await job.result(timeout=20)


async def test_a_job_runs_after_the_deadline_of_an_owner_that_fell_silent(scheduler: Scheduler) -> None:
    gated = Gated(scheduler)
    gated.go_on.set()
    async with scheduler, scheduler.worker():
        silent = scheduler.lock("reindex:a", ttl=1.0)
        assert await silent.acquire(renew=False)
        owner = await silent.owner()
        assert owner is not None
        job = await gated.task.enqueue("a")
        fence = await job.result(timeout=20)
        assert fence is not None
        assert fence > owner.fence


async def test_a_job_that_was_put_off_while_it_waits_is_not_brought_back(scheduler: Scheduler) -> None:
    gated = Gated(scheduler)
    gated.go_on.set()
    async with scheduler, scheduler.worker():
        lock = scheduler.lock("reindex:a", ttl=FOR_EVER)
        assert await lock.acquire()
        put_off, follower = await gated.task.enqueue("a"), await gated.task.enqueue("a")
        for job in (put_off, follower):
            await given_back(scheduler, job.id)
        now = await scheduler.store.now()
        await scheduler.store.edit([put_off.id], JobEdit(due_at=now + HOUR))
        await lock.release()
        await follower.result(timeout=20)
        assert (await read(scheduler, put_off.id)).due_at == now + HOUR
        assert gated.runs == 1


@pytest.mark.timeout(120)
@pytest.mark.covers("lock-left-behind")
async def test_a_rescued_job_has_its_lock_before_the_deadline_of_the_run_that_died(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        worker = await fleet.start()
        job = await app.reindex.enqueue("a", gate.path)
        await fleet.entry("start", job=job.id, pid=worker.pid)
        successor = await fleet.start()
        [owner] = await app.scheduler.locks.list()
        assert (owner.name, job.id in owner.holder) == ("reindex:a", True)
        worker.reap()
        again = await fleet.entry("start", job=job.id, pid=successor.pid)
        assert again.at < from_datetime(owner.deadline)
        [heir] = await app.scheduler.locks.list()
        assert heir.fence > owner.fence
        gate.open()
        assert await job.result(timeout=60) == heir.fence
        assert await app.scheduler.locks.list() == []


@pytest.mark.parametrize("kind", ["async", "thread", "child"])
@pytest.mark.timeout(120)
@pytest.mark.usefixtures("fleet")
async def test_a_run_that_loses_its_lock_is_stopped_and_fails(
    scheduler: Scheduler, kind: str, monkeypatch: pytest.MonkeyPatch, fleet: Fleet
) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    function: dict[str, Any] = {"async": wait, "thread": heed_in_thread, "child": spin}
    task = scheduler.task(name="reindex", lock="reindex", cpu=kind == "child")(function[kind])
    monkeypatch.setattr(scheduler, "lock", partial(scheduler.lock, ttl=0.6))
    async with scheduler, scheduler.worker():
        job = await task.enqueue()
        await until(scheduler.locks.list, what="a lock that is held")
        if kind != "async":
            await fleet.entry("start", job=job.id)
        assert await scheduler.locks.release("reindex")
        with pytest.raises(JobFailed, match="LockLost: lock 'reindex' was lost while the job ran"):
            await job.result(timeout=60)
        record = await read(scheduler, job.id)
        assert (record.state, record.failures) == (State.FAILED, 1)


async def test_a_run_that_did_not_notice_the_loss_of_its_lock_has_not_succeeded(scheduler: Scheduler) -> None:
    gated = Gated(scheduler)
    async with scheduler, scheduler.worker():
        job = await gated.task.enqueue("a")
        await gated.begun.wait()
        assert await scheduler.locks.release("reindex:a")
        gated.go_on.set()
        with pytest.raises(JobFailed, match="LockLost"):
            await job.result(timeout=20)


@pytest.mark.covers("lock-left-behind")
@pytest.mark.parametrize("end", ["failure", "timeout", "cancel", "lost claim", "stop"])
async def test_the_lock_is_free_however_the_run_ends(scheduler: Scheduler, end: str) -> None:
    go_on, held = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @scheduler.task(name="reindex", lock="reindex", timeout=0.05 if end == "timeout" else None)
    def reindex() -> None:
        loop.call_soon_threadsafe(held.set)
        assert go_on.wait(30)
        if end == "failure":
            raise ValueError
        current_job().check_cancelled()

    async with scheduler, scheduler.worker(grace=0) as worker:
        assert isinstance(worker, Worker)
        job = await reindex.enqueue()
        await held.wait()
        if end == "cancel":
            await scheduler.jobs.cancel(job.id)
            await until(lambda: worker._dispatcher.runs[job.id].stopping, what="a run that is told")
        elif end == "lost claim":
            await scheduler.store.release([job.id], force=True)
            await scheduler.store.cancel([job.id], reason="gone")
            await scheduler.store.delete([job.id])
        elif end == "stop":
            worker.ask_to_stop(now=True)
            await until(lambda: worker._dispatcher.runs[job.id].stopping, what="a run that is told")
        elif end == "timeout":
            # The thread goes on, and so the lock is kept.
            await asyncio.sleep(0.1)
        assert [owner.name for owner in await scheduler.locks.list()] == ["reindex"]
        go_on.set()

        async def free() -> bool:
            return await scheduler.locks.list() == []

        await until(free, what="a lock that is free")


async def test_a_job_starts_once_for_those_who_listen_however_often_it_waits(scheduler: Scheduler) -> None:
    gated, told = Gated(scheduler), list[str]()
    gated.go_on.set()

    def hear(event: Event) -> None:
        told.append(event.kind)

    scheduler.events.subscribe(hear, "job.started", "job.succeeded", "job.retrying", "job.interrupted")
    async with scheduler, scheduler.worker() as worker:
        async with scheduler.lock("reindex:a", ttl=FOR_EVER):
            job = await gated.task.enqueue("a")
            await given_back(scheduler, job.id)
            assert worker.stats().done == 0
        await job.result(timeout=20)
        await until(lambda: worker.stats().done, what="a run that is counted")
    assert told == ["job.started", "job.succeeded"]


@pytest.mark.parametrize("sync", [False, True])
async def test_a_job_does_not_wait_for_its_own_lock(scheduler: Scheduler, *, sync: bool) -> None:
    async def wait() -> None:
        await scheduler.lock("reindex").acquire()

    def wait_in_thread() -> None:
        scheduler.sync.lock("reindex").acquire()

    task = scheduler.task(name="reindex", lock="reindex")(wait_in_thread if sync else wait)
    async with scheduler, scheduler.worker():
        with pytest.raises(JobFailed, match=LockMisused.__name__):
            await (await task.enqueue()).result(timeout=20)


@pytest.mark.parametrize("value", [None, True, 1.5, [1], "", "x" * 300, "a\0b"])
async def test_a_value_that_cannot_be_in_a_name_fails_the_job(sqlite_url: str, value: Any) -> None:
    scheduler = Scheduler(sqlite_url)

    @scheduler.task(name="reindex", lock="{tenant}", retries=3)
    async def reindex(tenant: Any) -> None: ...

    async with scheduler, scheduler.worker():
        job = await reindex.enqueue(value)
        with pytest.raises(JobFailed, match="lock"):
            await job.result(timeout=20)
        record = await read(scheduler, job.id)
        assert (record.failures, record.reason) == (1, "undecodable")


async def test_every_kind_of_handler_knows_the_fence(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)

    def in_thread() -> int | None:
        return current_job().lock_fence

    thread = scheduler.task(name="thread", lock="reindex")(in_thread)
    child = scheduler.task(name="child", lock="reindex", cpu=True)(cpu_tasks.lock_fence)
    bare = scheduler.task(name="bare")(in_thread)

    class Reindex(Job, scheduler=scheduler, name="class", lock="reindex:{tenant}"):
        async def run(self, tenant: int) -> int | None:
            return current_job().lock_fence

    async with scheduler, scheduler.worker():
        fences = [await (await task.enqueue()).result(timeout=30) for task in (thread, child)]
        assert fences == sorted({fence for fence in fences if fence is not None})
        assert await (await Reindex.enqueue(7)).result(timeout=20)
        assert await (await bare.enqueue()).result(timeout=20) is None


async def test_a_job_waits_until_its_lock_can_be_reached(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(sqlite_url)
    gated, take = Gated(scheduler), StoreLock.try_take
    gated.go_on.set()
    answers = [False, True]

    async def try_take(lock: StoreLock, **asked: Any) -> Attempt:
        if not answers.pop(0):
            raise StoreUnavailable("no one answers")
        return await take(lock, **asked)

    monkeypatch.setattr(StoreLock, "try_take", try_take)
    async with scheduler, scheduler.worker():
        assert await (await gated.task.enqueue("a")).result(timeout=20) is not None
    assert "its lock cannot be had: no one answers" in caplog.text


async def test_a_worker_that_stops_leaves_the_waiting_to_others(scheduler: Scheduler) -> None:
    gated = Gated(scheduler)
    gated.go_on.set()
    async with scheduler:
        async with scheduler.lock("reindex:a", ttl=FOR_EVER):
            async with scheduler.worker() as worker:
                assert isinstance(worker, Worker)
                jobs = [await gated.task.enqueue("a") for _ in range(3)]
                for job in jobs:
                    await given_back(scheduler, job.id)
                [watch] = worker._job_locks._watches.values()
            assert watch.cancelled()
        async with scheduler.worker():
            for job in jobs:
                await job.result(timeout=20)
