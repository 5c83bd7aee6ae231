"""A worker for several stores: one row, one set of slots, and each command carried out once for all of them."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest

from duetime import Ended, Scheduler, current_job, every
from duetime.errors import JobFailed, StoreUnavailable, Unsupported
from duetime.model.job import Claim
from duetime.model.states import State
from duetime.runtime.worker import Worker
from duetime.stores.base import ClaimRequest, ReleaseAnswer
from tests.integration.hybrid.kit import PATIENCE, Split, task_of, until, waiting_of
from tests.support.stores import hybrid_of

HALVES = pytest.mark.parametrize("half", ["near", "far"])
OTHER = {"near": "far", "far": "near"}


async def test_jobs_of_both_stores_are_run(split: Split) -> None:
    async with split.working():
        jobs = [await task_of(split, half).enqueue(half) for half in ("near", "far") * 5]
        assert [await job.result(timeout=10) for job in jobs] == ["near", "far"] * 5


@HALVES
async def test_tries_and_their_log_are_read_wherever_the_job_is(split: Split, half: str) -> None:
    @split.scheduler.task(name=half, on_crash="retry" if half == "near" else "fail")
    async def tells() -> None:
        logging.getLogger("app").warning("try %d", current_job().attempt)
        if current_job().attempt == 1:
            raise ZeroDivisionError

    async with split.working():
        job = await tells.options(retries=1).enqueue()
        await job.result(timeout=PATIENCE)
        tries = await split.scheduler.jobs.attempts(job.id)
        parts = await split.scheduler.jobs.logs(job.id)
    assert [attempt.outcome for attempt in tries] == ["error", "succeeded"]
    assert [line for part in parts for line in part.text.splitlines() if "try" in line] != []


async def test_it_is_one_worker_to_everyone(split: Split) -> None:
    told: list[str] = []
    split.scheduler.events.subscribe(
        lambda event: told.append(event.kind), "worker.started", "worker.stopped"
    )
    async with split.scheduler:
        async with split.scheduler.worker(concurrency=7) as worker:
            jobs = [await task_of(split, half).enqueue(half) for half in ("near", "far", "near")]
            for job in jobs:
                await job.result(timeout=10)
            assert (worker.stats().done, worker.stats().running) == (3, 0)
            await split.scheduler.workers.pause(worker.id, reason="why")
            [row] = await split.scheduler.workers.list()
            assert (row.id, row.state, row.slots, row.done, row.failed) == (worker.id, "alive", 7, 3, 0)
            assert (row.paused, row.paused_reason) == (True, "why")
        [row] = await split.scheduler.workers.list()
        assert row.state == "stopped"
    assert told == ["worker.started", "worker.stopped"]


async def test_no_more_jobs_run_at_once_than_it_has_slots(split: Split) -> None:
    async with split.working(concurrency=3) as worker:
        for n in range(4):
            await split.near_wait.enqueue(f"near {n}")
            await split.far_wait.enqueue(f"far {n}")
        await until(lambda: len(split.ran) == 3)
        # What finds no slot has been looked for by then.
        await split.scheduler.workers.stop_job(worker.id, "none")
        assert (len(split.ran), worker.stats().running) == (3, 3)
        split.gate.set()
        await until(lambda: len(split.ran) == 8)


@HALVES
@pytest.mark.covers("backlog-starves-store")
async def test_a_long_backlog_of_one_store_does_not_starve_the_other_though_it_is_slower(
    split: Split, half: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @split.scheduler.task(name="many", on_crash="retry" if half == "near" else "fail")
    async def many() -> None:
        split.ran.append("many")
        await asyncio.sleep(0.05)

    backlog = 30
    async with split.scheduler:
        near, far = split.scheduler.store.parts
        slow = near if half == "far" else far
        claim = slow.claim

        async def claim_slowly(demand: ClaimRequest) -> list[Claim]:
            await asyncio.sleep(0.02)
            return await claim(demand)

        monkeypatch.setattr(slow, "claim", claim_slowly)
        await split.scheduler.enqueue_many([many.call() for _ in range(backlog)])
        async with split.working(concurrency=1):
            await until(lambda: len(split.ran) > 3)
            await task_of(split, OTHER[half]).enqueue("one")
            await until(lambda: "one" in split.ran)
            assert split.ran.index("one") < backlog, "it had to wait for all others"


@HALVES
async def test_a_store_that_waits_for_a_slot_and_wants_none_any_more_leaves_it(
    split: Split, half: str
) -> None:
    async with split.working(concurrency=1):
        first = await waiting_of(split, half).enqueue("first")
        await until(lambda: split.ran == ["first"])
        gone = await waiting_of(split, OTHER[half]).enqueue("gone")
        again = await task_of(split, half).enqueue("again")
        await split.scheduler.jobs.cancel(gone.id)
        split.gate.set()
        assert await again.result(timeout=10) == "again"
        assert await first.result(timeout=10) == "first"


async def test_after_a_number_of_jobs_of_both_stores_it_ends(split: Split) -> None:
    async with split.scheduler:
        for n in range(6):
            await task_of(split, "far" if n % 2 else "near").enqueue(str(n))
        async with asyncio.timeout(PATIENCE), split.scheduler.worker(max_jobs=4, concurrency=2) as worker:
            await worker.asked_to_stop()
        assert worker.used_up
        counts = await split.scheduler.queues.counts()
    assert len(split.ran) == 4
    assert counts == {("default", State.SUCCEEDED): 4, ("default", State.PENDING): 2}


async def test_a_burst_ends_when_nothing_is_due_in_any_store(split: Split) -> None:
    """Each job enqueues the next one in the other store."""

    @split.scheduler.task(name="hop")
    async def hop(left: int) -> None:
        split.ran.append(str(left))
        if left:
            await (hop_once if left % 2 else hop).enqueue(left - 1)

    @split.scheduler.task(name="hop_once", on_crash="fail")
    async def hop_once(left: int) -> None:
        await hop(left)

    async with split.scheduler:
        await hop.enqueue(9)
        await hop_once.enqueue(8)
        later = await hop.options(delay="30m").enqueue(0)
        async with asyncio.timeout(PATIENCE), split.scheduler.worker(burst=True, concurrency=2) as worker:
            await worker.asked_to_stop()
        assert (await later.record()).state is State.PENDING
    assert sorted(split.ran) == sorted(map(str, [*range(10), *range(9)]))


async def test_a_burst_that_finds_nothing_ends(split: Split) -> None:
    async with split.scheduler, asyncio.timeout(PATIENCE), split.scheduler.worker(burst=True) as worker:
        await worker.asked_to_stop()
        assert worker.stats().done == 0


async def test_what_it_is_told_it_does_for_all_stores(split: Split) -> None:
    workers = split.scheduler.workers
    async with split.working() as worker:
        running = [await waiting_of(split, half).enqueue(half) for half in ("near", "far")]
        await until(lambda: len(split.ran) == 2)
        stacks = await workers.stacks(worker.id)
        for job in running:
            assert f"job {job.id} of" in stacks
        assert await workers.pause(worker.id) == "paused; 2 jobs still running"
        waiting = [await task_of(split, half).enqueue(half) for half in ("near", "far")]
        await workers.stop_job(worker.id, "none")
        states = [job.state for job in await split.scheduler.store.get([job.id for job in waiting])]
        assert states == [State.PENDING] * 2
        assert await workers.resume(worker.id) == "resumed"
        for job in waiting:
            await job.result(timeout=10)
        assert await workers.stop(worker.id, now=True) == "stopping; 2 jobs cancelled"
        async with asyncio.timeout(PATIENCE):
            await worker.asked_to_stop()


@HALVES
async def test_a_job_is_stopped_and_given_back_by_the_worker_that_has_it(split: Split, half: str) -> None:
    async with split.working(window="30s") as worker:
        runs = await waiting_of(split, half).enqueue("x")
        await until(lambda: split.ran == ["x"])
        answer = await split.scheduler.workers.stop_job(worker.id, runs.id)
        assert answer == f"job {runs.id} is asked to stop"
        # Jobs that must not run twice are never held.
        ahead = await split.near.options(delay=20, queue="default").enqueue("later")

        async def is_held() -> bool:
            return (await ahead.record()).state is State.RUNNING

        await until(is_held)
        assert await split.scheduler.jobs.release(ahead.id) is ReleaseAnswer.RELEASED


async def test_schedules_are_declared_and_fired_once(split: Split) -> None:
    split.scheduler.schedule(every("1s"), name="often", args=("tick",))(split.near)
    async with split.working():
        await until(lambda: len(split.ran) >= 2)
        [record] = await split.scheduler.schedules.list()
        jobs = await split.scheduler.jobs.list(schedule="often")
        assert record.made >= 2
        assert await split.places([job.id for job in jobs]) == [[1]] * len(jobs)
        assert len({job.occurrence for job in jobs}) == len(jobs)


async def test_a_process_that_only_fires_schedules_works_on_the_far_store_alone(split: Split) -> None:
    async with split.scheduler, split.scheduler.worker(jobs=False) as worker:
        assert isinstance(worker, Worker)
        near, far = split.scheduler.store.parts
        assert ([row.state for row in await near.workers()], len(await far.workers())) == ([], 1)


async def test_jobs_that_are_called_back_live_far_and_so_do_those_that_are_called(split: Split) -> None:
    @split.scheduler.task(name="then")
    async def then(ended: Ended) -> None:
        split.ran.append(ended.id)

    @split.scheduler.task(name="begins", on_success=then)
    async def begins() -> None:
        """Succeed."""

    async with split.working():
        job = await begins.enqueue()
        await until(lambda: split.ran == [job.id])
        ids = [record.id for record in await split.scheduler.jobs.list()]
        assert await split.places(ids) == [[1], [1]]


async def test_a_handlers_transaction_is_of_the_far_store_and_refused_to_jobs_elsewhere(split: Split) -> None:
    @split.scheduler.task(name="writes")
    async def writes() -> None:
        async with current_job().transaction() as tx:
            tx.connection.execute("SELECT 1")

    async with split.working():
        job = await writes.enqueue()
        with pytest.raises(JobFailed, match="far_queues= in its URL"):
            await job.result(timeout=10)
        keyed = await writes.options(key="k").enqueue()
        await keyed.result(timeout=10)


async def test_a_transaction_takes_jobs_along_to_the_far_store(split: Split) -> None:
    @split.scheduler.task(name="writes", on_crash="fail")
    async def writes() -> str:
        async with current_job().transaction() as tx:
            return (await split.near.options(tx=tx).enqueue("inside")).id

    async with split.working():
        job = await writes.enqueue()
        await job.result(timeout=10)
        await until(lambda: split.ran == ["inside"])


async def test_a_hybrid_itself_lends_nothing(split: Split) -> None:
    async with split.scheduler:
        with pytest.raises(Unsupported, match="a job may live in another store"):
            await split.scheduler.store.lend(timeout=1).begin()


async def test_blocking_callers_are_served(split: Split) -> None:
    def call() -> list[str]:
        try:
            return [split.near.sync.enqueue("a").id, split.far.options(delay=1).sync.enqueue("b").id]
        finally:
            split.scheduler.sync.close()

    ids = await asyncio.to_thread(call)
    async with split.scheduler:
        assert await split.places(ids) == [[0], [1]]


async def test_locks_are_kept_far(split: Split, files_url: str) -> None:
    other = Scheduler(files_url)
    async with split.scheduler, other, split.scheduler.lock("reindex"):
        [_, far] = split.scheduler.store.parts
        assert [owner.name for owner in await far.locks()] == ["reindex"]
        assert not await other.lock("reindex").acquire(timeout=0)


async def test_a_store_that_cannot_be_reached_at_the_start_is_told_of(sqlite_url: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1 cannot be reached"):
        await Scheduler(hybrid_of("redis://127.0.0.1:1", sqlite_url)).open()


async def test_a_job_starts_at_its_time_in_both_stores(split: Split) -> None:
    async with split.working():
        jobs = [await task_of(split, half).options(delay=0.3).enqueue(half) for half in ("near", "far")]
        for job in jobs:
            await job.result(timeout=10)
            record = await job.record()
            assert record.started_at is not None
            assert record.started_at - record.due_at >= timedelta(0)
