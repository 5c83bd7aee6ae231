"""Claims taken before their due time: they start on time, hold nobody up and cost nothing when they are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from signal import SIGTERM
from typing import Any

import pytest

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.stores.base import CancelAnswer, Store
from tests.integration.kit import Fleet, read_all, until
from tests.integration.tasks import App

SLOTS = 10
AHEAD = 50
"""Within the minute of which workers are told at once, and longer than anybody waits for a claim."""
WINDOW = 90


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def all_held(store: Store, ids: list[JobId]) -> None:
    """Wait until the jobs are claimed ahead."""

    async def held() -> bool:
        jobs = await read_all(store, ids)
        assert all(job.started_at is None for job in jobs.values()), "too late: a job has started"
        return all(job.state is State.RUNNING for job in jobs.values())

    await until(held, what=f"{len(ids)} unstarted claims")


async def held_before(store: Store, plant: Callable[[datetime], Awaitable[list[JobId]]]) -> list[JobId]:
    """Plant jobs that are claimed ahead with half of the time to go; a busy machine may need them to be due later."""

    async def held(ids: list[JobId]) -> bool:
        return all(job.state is State.RUNNING for job in (await read_all(store, ids)).values())

    for lead in (3, 6, 12, 24):
        ids = await plant(in_seconds(lead))
        half_time = in_seconds(lead / 2)
        while datetime.now(UTC) < half_time:
            if await held(ids):
                return ids
            await asyncio.sleep(0.01)
    raise AssertionError("nothing was held long enough before its time")


async def note_at(app: App, due: datetime, **options: Any) -> list[JobId]:
    return [(await app.note.options(at=due, **options).enqueue()).id]


async def test_immediate_jobs_do_not_wait_behind_jobs_that_are_claimed_ahead(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        await fleet.start(concurrency=SLOTS, window=WINDOW)
        ahead = await app.scheduler.enqueue_many([app.note.options(delay=AHEAD).call() for _ in range(SLOTS)])
        await all_held(app.scheduler.store, [job.id for job in ahead])
        jobs = [await app.wait_for.enqueue(gate.path) for _ in range(SLOTS)]
        for job in jobs:
            await fleet.entry("start", job=job.id)

    assert {entry.job for entry in fleet.ledger.entries("start")} == {job.id for job in jobs}


@pytest.mark.covers("worker-killed")
async def test_unstarted_claims_of_a_killed_worker_cost_neither_an_attempt_nor_a_crash(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    gate.open()
    async with app.scheduler:
        store = app.scheduler.store
        victim = await fleet.start(concurrency=50, window="20s")
        once: list[JobId] = []

        async def plant(due: datetime) -> list[JobId]:
            never_ahead = [app.wait_for_once.options(at=due).call(gate.path) for _ in range(5)]
            ahead = [app.note.options(at=due).call() for _ in range(50)]
            handles = await app.scheduler.enqueue_many([*never_ahead, *ahead])
            once[:] = [job.id for job in handles[:5]]
            return [job.id for job in handles[5:]]

        ids = await held_before(store, plant)
        victim.kill()
        await fleet.start()
        records = await fleet.ended(store, ids + once)
        tries = [await store.attempts(job_id) for job_id in records]

    assert {(r.state, r.crashes, r.blames, r.failures) for r in records.values()} == {
        (State.SUCCEEDED, 0, 0, 0)
    }
    assert not any(tries)
    started = [entry for entry in fleet.ledger.entries("start") if entry.job in records]
    assert sorted(entry.job for entry in started) == sorted(records)
    assert all(entry.at >= entry.due_at for entry in started)


async def test_a_task_that_must_not_run_twice_is_never_claimed_ahead(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        await fleet.start(window=WINDOW)
        due = in_seconds(AHEAD)
        # Together: who sees only the first has nothing to claim ahead, and comes back when half of the time is over.
        once, later = await app.scheduler.enqueue_many(
            [
                app.wait_for_once.options(at=due).call(gate.path),
                app.note.options(at=due + timedelta(seconds=1)).call(),
            ]
        )
        await all_held(store, [later.id])
        assert (await store.get([once.id]))[0].state is State.PENDING


@pytest.mark.covers("claim-order")
async def test_a_held_job_yields_its_slot_to_a_more_urgent_one(fleet: Fleet) -> None:
    app, gate, other_gate = fleet.app(), fleet.gate(), fleet.gate("other")
    async with app.scheduler:
        store = app.scheduler.store
        await fleet.start(concurrency=2, window="30s")
        first = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=first.id)
        due = in_seconds(5)
        other, low = await app.scheduler.enqueue_many(
            [
                app.wait_for.options(at=due, priority=8).call(other_gate.path),
                app.note.options(at=due, priority=9).call(),
            ]
        )
        await all_held(store, [other.id, low.id])
        # It takes the last slot, and the one that is due at the same instant finds none.
        await fleet.entry("start", job=other.id)
        high = await app.note.options(priority=0).enqueue()
        gate.open()
        wanted = [first.id, high.id, low.id]
        await fleet.ended(store, wanted)
        other_gate.open()

    assert [entry.job for entry in fleet.ledger.entries("start") if entry.job in wanted] == wanted


async def test_a_claimed_job_that_is_cancelled_before_its_time_never_starts(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        await fleet.start(window=WINDOW)
        job = await app.note.options(delay=AHEAD).enqueue()
        await all_held(app.scheduler.store, [job.id])
        assert await app.scheduler.jobs.cancel(job.id, reason="not wanted") is CancelAnswer.REQUESTED
        record = (await fleet.ended(app.scheduler.store, [job.id]))[job.id]
        assert await app.scheduler.jobs.cancel(job.id) is CancelAnswer.FINISHED

    assert (record.state, record.started_at) == (State.CANCELLED, None)
    assert not fleet.ledger.entries("start")


async def test_a_pause_lets_claimed_jobs_run_and_hands_out_no_others(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        store = app.scheduler.store
        await fleet.start(window="20s")
        [held] = await held_before(store, partial(note_at, app))
        await app.scheduler.queues.pause("default", reason="deploy")
        late = await app.note.enqueue()
        await fleet.ended(store, [held])
        assert (await store.get([late.id]))[0].state is State.PENDING
        await app.scheduler.queues.resume("default")
        records = await fleet.ended(store, [held, late.id])

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
