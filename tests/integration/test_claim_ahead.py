"""Claims taken before their due time: they start on time, hold nobody up and cost nothing when they are lost."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime, timedelta
from signal import SIGTERM

import pytest

from duetime.model.instants import MILLISECOND
from duetime.model.job import JobId
from duetime.model.states import State
from duetime.stores.base import CancelAnswer, Store
from tests.integration.kit import Fleet, read_all, until
from tests.integration.ledger import Entry
from tests.integration.tasks import App

ALLOWANCE = 5 * MILLISECOND


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def all_held(store: Store, ids: list[JobId]) -> None:
    """Wait until the jobs are claimed ahead."""

    async def held() -> bool:
        jobs = await read_all(store, ids)
        assert all(job.started_at is None for job in jobs.values()), "too late: a job has started"
        return all(job.state is State.RUNNING for job in jobs.values())

    await until(held, what=f"{len(ids)} unstarted claims")


async def start_delay(fleet: Fleet, app: App) -> int:
    """Enqueue an immediate job and return how long after that it started."""
    job = await app.note.enqueue()
    entry: Entry = await fleet.entry("start", job=job.id)
    return entry.at - entry.due_at


def p99(delays: list[int]) -> float:
    return statistics.quantiles(delays, n=100)[-1]


@pytest.mark.timeout(120)
async def test_immediate_jobs_do_not_wait_behind_jobs_that_are_claimed_ahead(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        await fleet.start(concurrency=10)
        for _ in range(3):  # Other processes of this machine may spoil a measurement.
            idle = [await start_delay(fleet, app) for _ in range(60)]
            begin = in_seconds(0.5)
            planted = [begin + timedelta(milliseconds=50 * number) for number in range(80)]
            await app.scheduler.enqueue_many([app.work.options(at=at).call(0.05) for at in planted])
            busy: list[int] = []
            while datetime.now(UTC) < planted[-1]:
                busy.append(await start_delay(fleet, app))
            if p99(busy) <= 2 * p99(idle) + ALLOWANCE:
                return
    pytest.fail(f"idle {p99(idle)} µs, beside 20 due jobs a second {p99(busy)} µs, of {len(busy)}")


@pytest.mark.covers("worker-killed")
async def test_unstarted_claims_of_a_killed_worker_cost_neither_an_attempt_nor_a_crash(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    gate.open()
    async with app.scheduler:
        store = app.scheduler.store
        victim = await fleet.start(concurrency=50, window="20s")
        due = in_seconds(4)
        ahead = await app.scheduler.enqueue_many([app.note.options(at=due).call() for _ in range(50)])
        once = await app.scheduler.enqueue_many(
            [app.wait_for_once.options(at=due).call(gate.path) for _ in range(5)]
        )
        await all_held(store, [job.id for job in ahead])
        victim.kill()
        await fleet.start()
        records = await fleet.ended(store, [job.id for job in (*ahead, *once)])
        tries = [await store.attempts(job_id) for job_id in records]

    assert {(r.state, r.crashes, r.blames, r.failures) for r in records.values()} == {
        (State.SUCCEEDED, 0, 0, 0)
    }
    assert not any(tries)
    started = fleet.ledger.entries("start")
    assert sorted(entry.job for entry in started) == sorted(records)
    assert all(entry.at >= entry.due_at for entry in started)


async def test_a_task_that_must_not_run_twice_is_never_claimed_ahead(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        await fleet.start(window="20s")
        due = in_seconds(8)
        once = await app.wait_for_once.options(at=due).enqueue(gate.path)
        later = await app.note.options(at=due + timedelta(seconds=1)).enqueue()
        await all_held(store, [later.id])
        assert (await store.get([once.id]))[0].state is State.PENDING


@pytest.mark.covers("claim-order")
async def test_a_held_job_yields_its_slot_to_a_more_urgent_one(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        await fleet.start(concurrency=1, window="10s")
        first = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=first.id)
        due = in_seconds(8)  # Time enough for a worker that hears of it by looking.
        low = await app.note.options(at=due, priority=9).enqueue()
        await all_held(app.scheduler.store, [low.id])
        await until(lambda: datetime.now(UTC) > due, what="the due time")
        high = await app.note.options(priority=0).enqueue()
        gate.open()
        await fleet.ended(app.scheduler.store, [first.id, low.id, high.id])

    assert [entry.job for entry in fleet.ledger.entries("start")] == [first.id, high.id, low.id]


async def test_a_claimed_job_that_is_cancelled_before_its_time_never_starts(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        await fleet.start(window="30s")
        due = in_seconds(20)
        job = await app.note.options(at=due).enqueue()
        await all_held(app.scheduler.store, [job.id])
        assert await app.scheduler.jobs.cancel(job.id, reason="not wanted") is CancelAnswer.REQUESTED
        record = (await fleet.ended(app.scheduler.store, [job.id], within=15))[job.id]
        assert await app.scheduler.jobs.cancel(job.id) is CancelAnswer.FINISHED

    assert (record.state, record.started_at) == (State.CANCELLED, None)
    assert not fleet.ledger.entries("start")


async def test_a_pause_lets_claimed_jobs_run_and_hands_out_no_others(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        store = app.scheduler.store
        await fleet.start(window="5s")
        held = await app.note.options(delay=2).enqueue()
        await all_held(store, [held.id])
        await app.scheduler.queues.pause("default", reason="deploy")
        late = await app.note.enqueue()
        await fleet.ended(store, [held.id])
        assert (await store.get([late.id]))[0].state is State.PENDING
        await app.scheduler.queues.resume("default")
        records = await fleet.ended(store, [held.id, late.id])

    assert {record.state for record in records.values()} == {State.SUCCEEDED}


@pytest.mark.covers("graceful-stop")
async def test_a_worker_that_is_asked_to_stop_gives_unstarted_claims_back_at_once(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        worker = await fleet.start(window="60s")
        running = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=running.id)
        job = await app.note.options(delay=40).enqueue()
        await all_held(store, [job.id])
        worker.signal(SIGTERM)

        async def pending() -> bool:
            return (await store.get([job.id]))[0].state is State.PENDING

        await until(pending, what="the release")
        assert not worker.ended, "the release must not wait for running jobs"
        record = (await store.get([job.id]))[0]
        assert (record.failures, record.crashes, record.started_at, record.worker) == (0, 0, None, None)
        assert not await store.attempts(job.id)
        gate.open()
        await fleet.entry("stopped", pid=worker.pid)
