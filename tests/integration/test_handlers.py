"""Whatever a handler does, there is one record of it and the worker goes on."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

import pytest

from duetime import Scheduler, current_job
from duetime.errors import JobFailed, ResultExpired, ResultNotStored
from duetime.model.ids import new_job_id, new_token
from duetime.model.job import NewJob
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import MILLISECOND, from_datetime
from duetime.stores.base import ClaimRequest
from tests.integration.kit import Fleet, until
from tests.integration.tasks import wait_in_thread


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")

    __repr__ = __str__


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


async def read(scheduler: Scheduler, job_id: str) -> StoredJob:
    return (await scheduler.store.get([job_id]))[0]


@pytest.mark.covers("retry-budget", "run-record")
async def test_a_failing_job_is_tried_as_its_policy_says_and_then_ends_as_failed(
    scheduler: Scheduler,
) -> None:
    waits = [30 * MILLISECOND, 60 * MILLISECOND, 10 * MILLISECOND]

    @scheduler.task(name="fail", retries=[wait / 1_000_000 for wait in waits])
    async def fail() -> None:
        raise LookupError(f"try {current_job().attempt}")

    async with scheduler, scheduler.worker() as worker:
        job = await fail.enqueue()
        with pytest.raises(JobFailed, match="LookupError: try 4") as failure:
            await job.result(timeout=20)
        record = await read(scheduler, job.id)
        tries = await scheduler.store.attempts(job.id)

    assert [attempt.error for attempt in tries] == [f"LookupError: try {n}" for n in (1, 2, 3)]
    assert {attempt.outcome for attempt in tries} == {"error"}
    assert {attempt.worker for attempt in tries} == {worker.id}
    due = [*(attempt.due_at for attempt in tries[1:]), record.due_at]
    assert [then - attempt.ended_at for then, attempt in zip(due, tries, strict=True)] == waits
    assert all(before.fence < after.fence for before, after in pairwise(tries))
    assert (record.state, record.reason, record.failures, record.attempt) == (State.FAILED, "error", 4, 4)
    assert record.started_at is not None
    assert record.finished_at is not None
    assert record.due_at <= record.started_at <= record.finished_at
    assert record.traceback is not None
    assert "raise LookupError" in record.traceback
    assert failure.value.traceback == record.traceback


@pytest.mark.covers("due-in-the-past")
async def test_a_job_that_was_due_yesterday_runs_now_and_is_marked_late(scheduler: Scheduler) -> None:
    @scheduler.task(name="quick")
    async def quick() -> str:
        return "done"

    yesterday = datetime.now(UTC) - timedelta(days=1)
    async with scheduler, scheduler.worker():
        job = await quick.options(at=yesterday).enqueue()
        assert await job.result(timeout=20) == "done"
        record = await job.record()

    assert record.due_at == yesterday
    assert record.lateness is not None
    assert record.lateness > timedelta(days=1)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("async", "RuntimeError: coroutine raised StopIteration"), ("sync", "StopIteration")],
)
async def test_a_stray_stop_iteration_is_a_failure_like_any_other(
    scheduler: Scheduler, kind: str, text: str
) -> None:
    await _throws(scheduler, kind, StopIteration(), text)


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (asyncio.CancelledError("of its own"), "CancelledError: of its own"),
        (Unprintable(), "Unprintable: <its message cannot be printed>"),
        (ValueError("\x00 and \ud800"), "ValueError: \\x00 and \\ud800"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
async def test_anything_a_handler_raises_is_its_own_failure_and_the_worker_goes_on(
    scheduler: Scheduler, kind: str, error: BaseException, text: str
) -> None:
    await _throws(scheduler, kind, error, text)


async def _throws(scheduler: Scheduler, kind: str, error: BaseException, text: str) -> None:
    @scheduler.task(name="async")
    async def throw() -> None:
        raise error

    @scheduler.task(name="sync")
    def throw_in_thread() -> None:
        raise error

    @scheduler.task(name="quick")
    async def quick() -> None:
        pass

    async with scheduler, scheduler.worker():
        job = await (throw if kind == "async" else throw_in_thread).enqueue()
        with pytest.raises(JobFailed):
            await job.result(timeout=20)
        record = await read(scheduler, job.id)
        await (await quick.enqueue()).result(timeout=20)

    assert (record.state, record.error) == (State.FAILED, text)


@pytest.mark.parametrize(
    "result", [object(), {(1, 2): 3}, "x" * 300_000, float], ids=["object", "keys", "size", "class"]
)
async def test_a_result_that_cannot_be_stored_does_not_make_a_success_a_failure(
    scheduler: Scheduler, result: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @scheduler.task(name="give")
    async def give() -> Any:
        return result

    async with scheduler, scheduler.worker():
        job = await give.enqueue()
        with pytest.raises(ResultNotStored, match="succeeded, but the result"):
            await job.result(timeout=20)
        record = await read(scheduler, job.id)

    assert (record.state, record.result) == (State.SUCCEEDED, None)
    assert record.result_error is not None
    [logged] = [one for one in caplog.records if one.name == "duetime.jobs"]
    assert logged.levelname == "ERROR"
    assert f"job {job.id} of give succeeded" in logged.getMessage()
    assert "; the result " in logged.getMessage()


async def test_where_no_result_is_kept_the_task_may_return_what_it_likes(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    @scheduler.task(name="lock", result_ttl=0)
    def lock() -> threading.Thread:
        return threading.current_thread()

    async with scheduler, scheduler.worker():
        job = await lock.enqueue()
        with pytest.raises(ResultExpired, match="its result is not kept"):
            await job.result(timeout=20)
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


@pytest.mark.parametrize(
    "payload",
    ["{not json", "[]", '{"number": "seven"}', '{"numbre": 7}', "{}", '{"number": 7, "number": '],
    ids=repr,
)
@pytest.mark.covers("unreadable-row")
async def test_a_row_that_cannot_be_decoded_is_set_aside_and_the_next_one_runs(
    scheduler: Scheduler, payload: str
) -> None:
    @scheduler.task(name="count", retries=5)
    async def count(number: int) -> int:
        return number + 1

    async with scheduler, scheduler.worker(concurrency=1):
        bad = NewJob(id=new_job_id(), task="count", payload=payload)
        await scheduler.store.enqueue([bad])
        good = await count.enqueue(1)
        assert await good.result(timeout=20) == 2

        async def ended() -> bool:
            return (await read(scheduler, bad.id)).state.terminal

        await until(ended, what="the end of the bad row")
        record = await read(scheduler, bad.id)

    assert (record.state, record.reason) == (State.FAILED, "undecodable")
    assert record.payload == payload
    assert record.error is not None
    assert "count" in record.error


async def test_an_async_handler_past_its_timeout_is_cancelled_and_recorded(scheduler: Scheduler) -> None:
    ended = asyncio.Event()

    @scheduler.task(name="dawdle", timeout="50ms")
    async def dawdle() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with scheduler, scheduler.worker():
        job = await dawdle.enqueue()
        with pytest.raises(JobFailed, match="timed out after 50 milliseconds"):
            await job.result(timeout=20)
        record = await read(scheduler, job.id)

    assert ended.is_set()
    assert (record.state, record.reason) == (State.FAILED, "timeout")


async def test_a_timeout_error_of_the_handlers_own_is_not_taken_for_ours(scheduler: Scheduler) -> None:
    @scheduler.task(name="ask", timeout=60)
    async def ask() -> None:
        raise TimeoutError("the other side")

    async with scheduler, scheduler.worker():
        job = await ask.enqueue()
        with pytest.raises(JobFailed, match="TimeoutError: the other side"):
            await job.result(timeout=20)
        assert (await read(scheduler, job.id)).reason == "error"


async def test_a_thread_past_its_timeout_keeps_its_slot_until_it_ends(
    scheduler: Scheduler, fleet: Fleet
) -> None:
    wait = scheduler.task(name="wait")(wait_in_thread)
    gate, open_gate = fleet.gate("first"), fleet.gate("second")
    open_gate.open()
    async with scheduler, scheduler.worker(concurrency=1):
        late = await wait.options(timeout="50ms").enqueue(gate.path)
        await fleet.entry("start", job=late.id)
        started = (await read(scheduler, late.id)).started_at
        assert started is not None
        following = await wait.enqueue(open_gate.path)

        async def past_timeout() -> bool:
            return await scheduler.store.now() > started + 200 * MILLISECOND

        await until(past_timeout, what="the timeout")
        assert (await read(scheduler, late.id)).state is State.RUNNING
        assert (await read(scheduler, following.id)).state is State.PENDING
        gate.open()
        await following.result(timeout=20)
        record = await read(scheduler, late.id)

    assert (record.state, record.reason) == (State.FAILED, "timeout")


@pytest.mark.covers("unknown-task")
async def test_a_worker_leaves_a_task_it_does_not_know_to_one_that_does(store_url: str) -> None:
    ignorant, knowing = Scheduler(store_url), Scheduler(store_url)

    @ignorant.task(name="known")
    async def known() -> None:
        pass

    @knowing.task(name="strange")
    async def strange() -> str:
        return "I know"

    async with knowing, ignorant.worker():
        job = await strange.enqueue()
        async with ignorant:
            await (await known.enqueue()).result(timeout=20)
        record = await read(knowing, job.id)
        assert (record.state, record.fence, record.failures) == (State.PENDING, 0, 0)
        async with knowing.worker():
            assert await job.result(timeout=20) == "I know"


async def test_a_running_job_that_is_cancelled_stops_and_is_recorded(scheduler: Scheduler) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @scheduler.task(name="endless")
    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with scheduler, scheduler.worker():
        job = await endless.enqueue()
        await asyncio.wait_for(started.wait(), 20)
        assert await scheduler.jobs.cancel(job.id, reason="no longer wanted") == "requested"
        await asyncio.wait_for(stopped.wait(), 20)

        async def ended() -> bool:
            return (await read(scheduler, job.id)).state.terminal

        await until(ended, what="the record")
        assert (await read(scheduler, job.id)).state is State.CANCELLED


@pytest.mark.parametrize(
    ("on_crash", "state"), [("retry", State.PENDING), ("fail", State.FAILED)], ids=["retry", "fail"]
)
async def test_a_claim_that_the_store_has_and_nobody_knows_of_counts_as_a_crash(
    scheduler: Scheduler, on_crash: Literal["retry", "fail"], state: State
) -> None:
    """As when a rescue is carried out although its answer never came: nobody else may rescue a living worker's."""

    @scheduler.task(name="quick", on_crash=on_crash)
    async def quick() -> None:
        raise AssertionError("it is for another queue")

    async with scheduler, scheduler.worker(lease="2s") as worker:
        job = await quick.options(queue="elsewhere").enqueue()
        demand = ClaimRequest(
            worker=worker.id, claim_id=new_token(), queues=(("elsewhere", 1),), limit=1, tasks=("quick",)
        )
        assert len(await scheduler.store.claim(demand)) == 1

        async def settled() -> bool:
            return (await read(scheduler, job.id)).state is not State.RUNNING

        await until(settled, what="the end of a claim that nobody knows of")
        record = await read(scheduler, job.id)

    assert (record.state, record.crashes) == (state, 1)


@pytest.mark.covers("lateness-without-poll")
async def test_a_job_is_claimed_before_its_time_and_started_at_it(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, int]] = []

    @scheduler.task(name="quick")
    async def quick() -> None:
        events.append(("start", from_datetime(current_job().started_at)))

    async with scheduler, scheduler.worker():
        store = scheduler.store
        claim = store.claim

        async def spy(demand: ClaimRequest) -> list[Any]:
            claims = await claim(demand)
            events.extend(("claim", item.claimed_at) for item in claims)
            return claims

        monkeypatch.setattr(store, "claim", spy)
        for lead in (1, 2, 4, 8):  # A busy machine may come to it too late.
            events.clear()
            job = await quick.options(delay=lead).enqueue()
            await job.result(timeout=20)
            due = (await read(scheduler, job.id)).due_at
            [(first, claimed), (second, started)] = events
            assert (first, second) == ("claim", "start")
            assert due <= started
            if claimed < due:
                break
        else:
            pytest.fail("the round trip belongs before the due time")


@pytest.mark.covers("slow-job-delays-nobody", "batch-waits-for-slowest")
async def test_slow_jobs_leave_the_other_slots_to_quick_ones(scheduler: Scheduler, fleet: Fleet) -> None:
    gate = fleet.gate()
    slow = scheduler.task(name="slow")(wait_in_thread)
    release = asyncio.Event()

    @scheduler.task(name="slow_in_loop")
    async def slow_in_loop() -> None:
        await release.wait()

    @scheduler.task(name="quick")
    async def quick(number: int) -> int:
        return number

    async with scheduler, scheduler.worker(concurrency=5):
        held = await scheduler.enqueue_many(
            [slow.call(gate.path), slow.call(gate.path), slow_in_loop.call(), slow_in_loop.call()]
        )
        jobs = [await quick.enqueue(number) for number in range(50)]
        assert [await job.result(timeout=20) for job in jobs] == list(range(50))
        assert {(await read(scheduler, job.id)).state for job in held} == {State.RUNNING}
        gate.open()
        release.set()
        for job in held:
            await job.result(timeout=20)
