"""Workers that die with a job in their hands."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from signal import SIGCONT

import pytest

from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.runtime.pacing import FleetPacing
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


@pytest.mark.covers("worker-killed", "nobody-gives-back", "cut-off-worker")
async def test_a_worker_on_another_host_is_believed_until_its_lease_ends(fleet: Fleet) -> None:
    """Processes of another host cannot be seen: only the lease is left."""
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
async def test_the_jobs_of_a_host_that_is_gone_are_taken_over_as_each_lease_ends(
    sqlite_url: str, fleet_at: FleetAt
) -> None:
    lease = 9
    fleet = fleet_at(sqlite_url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        jobs: list[str] = []
        for number in range(4):
            queue = f"queue-{number}"
            victim = await fleet.start(queues=[queue], lease=lease, host_key=ELSEWHERE)
            jobs.append((await app.wait_for.options(queue=queue).enqueue(gate.path)).id)
            await fleet.entry("start", job=jobs[-1], pid=victim.pid)
        heir = await fleet.start(queues=[f"queue-{number}" for number in range(4)], lease=lease)
        for victim in fleet.workers[:-1]:
            victim.kill()
        workers = {worker.id: worker.lease_until for worker in await app.scheduler.store.workers()}
        ends = {job.id: workers[job.worker or ""] for job in await app.scheduler.store.get(jobs)}
        for job in jobs:
            await fleet.entry("start", job=job, pid=heir.pid)
        gate.open()
        await fleet.ended(app.scheduler.store, jobs)
        # A job that is to blame for a death waits before it starts again.
        late = [(await app.scheduler.store.attempts(job))[0].ended_at - ends[job] for job in jobs]

    assert min(late) > 0
    assert max(late) < lease / 6 * SECOND, (
        "it waited for a heartbeat, of which there is one in each third of a lease"
    )


@pytest.mark.covers("worker-killed", "fleet-storm")
async def test_also_the_workers_of_a_large_fleet_notice_that_a_lease_is_over(
    postgres_url: str, fleet_at: FleetAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A few of many: each believes that there are fifty that take turns.
    monkeypatch.setattr(FleetPacing, "workers", property(lambda _: 50, lambda _, __: None), raising=False)
    fleet = fleet_at(postgres_url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler, AsyncExitStack() as heirs:
        victim = await fleet.start(lease=3, host_key=ELSEWHERE)
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id, pid=victim.pid)
        for _ in range(10):
            await heirs.enter_async_context(fleet.app().scheduler.worker(lease=3))
        victim.kill()
        dead = min(await app.scheduler.store.workers(), key=lambda worker: worker.started_at)
        again = await fleet.entry("start", job=job.id, pid=os.getpid())
        gate.open()
        await job.result(timeout=20)

    assert again.at > dead.lease_until


@pytest.mark.timeout(90)
@pytest.mark.covers("poison-job")
async def test_a_job_that_takes_its_worker_down_ends_after_four_at_most_whatever_runs_beside_it(
    fleet: Fleet,
) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        await fleet.start()
        neighbours = [await app.wait_for.enqueue(gate.path) for _ in range(3)]
        for neighbour in neighbours:
            await fleet.entry("start", job=neighbour.id)
        # It is claimed ahead, so that its start is not on record when the first worker dies.
        poison = await app.die.options(delay=1).enqueue()

        async def given_up() -> bool:
            if fleet.workers[-1].ended:
                fleet.launch()
            if len(fleet.ledger.entries("start", job=poison.id)) == 2:
                # Twice there were four suspects. From now on they run one at a time.
                gate.open()
            return (await store.get([poison.id]))[0].state.terminal

        await until(given_up, within=60, what="the end of the poison")
        record = (await store.get([poison.id]))[0]
        others = await fleet.ended(store, [neighbour.id for neighbour in neighbours])

    assert len(fleet.ledger.entries("start", job=poison.id)) <= 4
    assert (record.state, record.reason) == (State.FAILED, "crashed")
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
