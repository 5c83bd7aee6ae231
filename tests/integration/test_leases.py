"""A worker that lives keeps what it has, however long and however badly its jobs behave."""

from __future__ import annotations

import asyncio

import pytest

from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.runtime.upkeep.janitor import Janitor
from duetime.stores.base import Store
from tests.integration.kit import PATIENCE, Fleet, until

LEASE = "3s"


async def lease_of(store: Store, pid: int) -> int:
    return next(worker.lease_until for worker in await store.workers() if worker.pid == pid)


@pytest.mark.covers("lease-outlives-job")
async def test_a_job_that_outlasts_several_leases_starts_once(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        worker = await fleet.start(lease=LEASE)
        jobs = [await app.wait_for.enqueue(gate.path), await app.wait_in_thread.enqueue(gate.path)]
        for job in jobs:
            await fleet.entry("start", job=job.id, pid=worker.pid)
        await fleet.start(lease=LEASE)
        first = await lease_of(store, worker.pid)

        async def renewed_again_and_again() -> bool:
            return await lease_of(store, worker.pid) > first + 2 * 3 * SECOND

        await until(renewed_again_and_again, what="a lease that is kept")
        gate.open()
        records = await fleet.ended(store, [job.id for job in jobs])

    assert sorted(entry.job for entry in fleet.ledger.entries("start")) == sorted(job.id for job in jobs)
    assert {(r.state, r.crashes, r.result) for r in records.values()} == {
        (State.SUCCEEDED, 0, str(worker.pid))
    }


@pytest.mark.covers("blocked-loop")
async def test_a_handler_that_blocks_the_loop_is_shown_by_its_line_and_keeps_its_lease(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        worker = await fleet.start(lease=LEASE)
        job = await app.block_loop.enqueue(5)
        await fleet.entry("start", job=job.id, pid=worker.pid)
        await fleet.start(lease=LEASE)
        await job.result(timeout=30)
        record = (await app.scheduler.store.get([job.id]))[0]

    assert "the event loop has been blocked" in worker.log
    assert "in block_loop\n    time.sleep(seconds)" in worker.log
    assert "runs again" in worker.log
    assert (record.state, record.crashes) == (State.SUCCEEDED, 0)
    assert len(fleet.ledger.entries("start")) == 1


@pytest.mark.covers("fleet-dies")
async def test_a_heartbeat_that_tells_of_another_number_of_workers_has_them_counted_again(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: asyncio.Queue[int] = asyncio.Queue()
    monkeypatch.setattr(Janitor, "count_again", lambda janitor: counts.put_nowait(janitor._fleet.workers))

    async def count(expected: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while await counts.get() != expected:
                pass

    async with fleet.app().scheduler.worker(lease=LEASE):
        await count(1)
        other = await fleet.start(lease=LEASE)
        await count(2)
        other.kill()
        await count(1)
