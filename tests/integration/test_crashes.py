"""Workers that die with a job in their hands."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from signal import SIGCONT

import pytest

from duetime.model.states import State
from duetime.runtime.crowd import Crowd
from tests.integration.kit import Fleet, FleetAt, until

ELSEWHERE = "another-host/pid:[1]"


@pytest.mark.covers("worker-killed", "run-record")
async def test_a_job_of_a_killed_worker_runs_again_long_before_the_lease_ends(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        victim = await fleet.start(lease=30)
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id, pid=victim.pid)
        [dead] = await store.workers()
        heir = await fleet.start(lease=30)
        victim.kill()
        again = await fleet.entry("start", job=job.id, pid=heir.pid)
        gate.open()
        assert await job.result(timeout=20) == heir.pid
        record = (await store.get([job.id]))[0]
        [lost] = await store.attempts(job.id)

    assert again.at < dead.lease_until, "the lease had to end first"
    assert (record.state, record.crashes, record.failures, record.attempt) == (State.SUCCEEDED, 1, 0, 2)
    assert (lost.outcome, lost.worker) == ("lost", dead.id)


@pytest.mark.covers("worker-killed")
async def test_a_task_that_must_not_run_twice_fails_when_its_worker_dies(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        victim = await fleet.start()
        job = await app.wait_for_once.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        victim.kill()
        await fleet.start()
        record = (await fleet.ended(app.scheduler.store, [job.id]))[job.id]

    assert (record.state, record.reason) == (State.FAILED, "crashed")
    assert record.error is not None
    assert "died" in record.error
    assert len(fleet.ledger.entries("start", job=job.id)) == 1


@pytest.mark.covers("worker-killed", "nobody-gives-back")
async def test_a_worker_on_another_host_is_believed_until_its_lease_ends(
    sqlite_url: str, fleet_at: FleetAt
) -> None:
    """A file has no sessions, and processes of another host cannot be seen: only the lease is left."""
    fleet = fleet_at(sqlite_url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        victim = await fleet.start(lease="2s", host_key=ELSEWHERE)
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id, pid=victim.pid)
        heir = await fleet.start(lease="2s")
        victim.kill()
        until_then = (await app.scheduler.store.workers())[-1].lease_until
        again = await fleet.entry("start", job=job.id, pid=heir.pid)
        gate.open()
        assert await job.result(timeout=20) == heir.pid

    assert again.at > until_then, "it was taken over while its lease still ran"


@pytest.mark.covers("worker-killed")
async def test_a_worker_elsewhere_whose_session_is_gone_is_rescued_before_its_lease_ends(
    postgres_url: str, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(postgres_url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        victim = await fleet.start(lease=30, host_key=ELSEWHERE)
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id, pid=victim.pid)
        [dead] = await app.scheduler.store.workers()
        heir = await fleet.start(lease=30)
        victim.kill()
        again = await fleet.entry("start", job=job.id, pid=heir.pid)
        gate.open()
        assert await job.result(timeout=20) == heir.pid

    assert again.at < dead.lease_until


@pytest.mark.covers("worker-killed", "fleet-storm")
async def test_also_the_workers_of_a_large_fleet_notice_that_a_session_is_gone(
    postgres_url: str, fleet_at: FleetAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A few of many: each believes that there are fifty who take turns.
    monkeypatch.setattr(Crowd, "workers", property(lambda _: 50, lambda _, __: None), raising=False)
    fleet = fleet_at(postgres_url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler, AsyncExitStack() as heirs:
        victim = await fleet.start(lease=60, host_key=ELSEWHERE)
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id, pid=victim.pid)
        [dead] = await app.scheduler.store.workers()
        for _ in range(10):
            await heirs.enter_async_context(fleet.app().scheduler.worker(lease=60))
        victim.kill()
        again = await fleet.entry("start", job=job.id, pid=os.getpid())
        gate.open()
        await job.result(timeout=20)

    assert again.at < dead.lease_until


@pytest.mark.timeout(90)
@pytest.mark.covers("poison-job")
async def test_a_job_that_takes_its_worker_down_is_given_up_after_three_and_its_neighbours_finish(
    fleet: Fleet,
) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        await fleet.start()
        neighbours = [await app.wait_for.enqueue(gate.path) for _ in range(3)]
        for neighbour in neighbours:
            await fleet.entry("start", job=neighbour.id)
        poison = await app.die.enqueue()

        async def given_up() -> bool:
            if fleet.workers[-1].ended:
                fleet.launch()
            return (await store.get([poison.id]))[0].state.terminal

        # The first death has four suspects and is nobody's fault; then they run one at a time.
        gate.open()
        await until(given_up, within=60, what="the end of the poison")
        record = (await store.get([poison.id]))[0]
        others = await fleet.ended(store, [neighbour.id for neighbour in neighbours])

    assert (record.state, record.reason, record.blames) == (State.FAILED, "crashed", 3)
    assert record.error is not None
    assert "only suspect" in record.error
    assert {other.state for other in others.values()} == {State.SUCCEEDED}
    assert {other.blames for other in others.values()} == {0}


@pytest.mark.covers("zombie-worker", "stale-settlement")
@pytest.mark.parametrize("successor_is", ["still running", "done"])
async def test_a_worker_stopped_past_its_lease_changes_nothing_its_successor_did(
    fleet: Fleet, successor_is: str
) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        zombie = await fleet.start(lease="2s")
        job = await app.freeze.enqueue(gate.path)
        await fleet.entry("start", job=job.id, pid=zombie.pid)
        successor = await fleet.start(lease="2s")
        await fleet.entry("start", job=job.id, pid=successor.pid)
        if successor_is == "done":
            gate.open()
            await fleet.ended(store, [job.id])
        before = (await store.get([job.id]))[0]

        zombie.signal(SIGCONT)
        await fleet.entry("end", job=job.id, pid=zombie.pid)
        await until(lambda: "was refused" in zombie.log, what=lambda: f"a refusal in\n{zombie.log}")
        assert (await store.get([job.id]))[0] == before

        await until(lambda: "registers anew" in zombie.log, what=lambda: f"a new identity in\n{zombie.log}")
        gate.open()
        assert await job.result(timeout=30) == "successor"
        assert (await store.get([job.id]))[0].crashes == 1
        successor.kill()
        other = await app.note.enqueue()
        await fleet.entry("start", job=other.id, pid=zombie.pid)
