"""A replica takes over while a worker holds claims: what it has stays right, and no zombie changes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from signal import SIGCONT, SIGSTOP

import pytest
import pytest_asyncio

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.testing.conformance.kit import read
from tests.integration.kit import FleetAt, accepted, available, until
from tests.integration.redis.kit import follows, opened, tell
from tests.integration.redis.switch import Switch
from tools.servers import RedisServer
from tools.servers.process import HOST

LEASE = "2s"


@pytest_asyncio.fixture
async def switch(own_redis: RedisServer) -> AsyncIterator[Switch]:
    """Leads to `own_redis` at first."""
    async with Switch(own_redis).open() as switch:
        yield switch


async def fall_behind(replica: RedisServer, primary: RedisServer) -> None:
    """Let a replica miss what comes from now on."""
    await follows(replica, primary)
    await tell(replica, "REPLICAOF", "NO", "ONE")
    await tell(replica, "CONFIG", "SET", "appendonly", "yes")


async def take_over(switch: Switch, replica: RedisServer, primary: RedisServer) -> None:
    """Let the replica be the primary, and nobody reach the one before any more."""
    await asyncio.to_thread(primary.kill)
    await tell(replica, "REPLICAOF", "NO", "ONE")
    switch.turn(replica)
    await switch.cut()


async def ended_at(server: RedisServer, job_id: JobId) -> None:
    """Wait until a server has the end of a job on record."""
    async with opened(server.url()) as store:

        async def done() -> bool:
            return (await read(store, job_id)).state is State.SUCCEEDED

        await until(done, what="an end")


@pytest.mark.covers("database-restart", "lagging-replica")
async def test_claims_that_the_replica_has_are_kept_and_each_job_ends_once(
    own_redis: RedisServer, replica: RedisServer, switch: Switch, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(switch.url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        worker = await fleet.start()
        running = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=running.id)
        await follows(replica, own_redis)
        await take_over(switch, replica, own_redis)
        gate.open()
        later = await accepted(app, app.note.call())
        records = await fleet.ended(app.scheduler.store, [running.id, later])

    assert {(r.state, r.crashes) for r in records.values()} == {(State.SUCCEEDED, 0)}
    assert records[running.id].result == str(worker.pid)
    assert len(fleet.ledger.entries("start", job=running.id)) == 1


@pytest.mark.covers("lagging-replica", "zombie-worker", "stale-settlement")
@pytest.mark.parametrize("successor_is", ["still running", "done"])
async def test_a_claim_that_was_lost_with_the_primary_cannot_be_settled_over_one_with_the_same_fence(
    own_redis: RedisServer, replica: RedisServer, switch: Switch, fleet_at: FleetAt, successor_is: str
) -> None:
    fleet = fleet_at(switch.url)
    app = fleet.app()
    async with app.scheduler:
        store = app.scheduler.store
        zombie = await fleet.start(lease=LEASE)
        await app.scheduler.queues.pause("default")
        job = await app.wait_for_own.enqueue(fleet.gate().path)
        await fall_behind(replica, own_redis)
        await app.scheduler.queues.resume("default")
        await fleet.entry("start", job=job.id, pid=zombie.pid)
        assert (await store.get([job.id]))[0].fence == 1
        zombie.signal(SIGSTOP)
        await take_over(switch, replica, own_redis)
        await available(lambda: app.scheduler.queues.resume("default"))
        successor = await fleet.start(lease=LEASE)
        await fleet.entry("start", job=job.id, pid=successor.pid)
        if successor_is == "done":
            fleet.gate(f"gate-{successor.pid}").open()
            await fleet.ended(store, [job.id])
        before = (await store.get([job.id]))[0]
        assert before.fence == 1, "the first claim is not forgotten"

        fleet.gate(f"gate-{zombie.pid}").open()
        zombie.signal(SIGCONT)
        await until(lambda: "was refused" in zombie.log, what=lambda: f"a refusal in\n{zombie.log}")
        assert (await store.get([job.id]))[0] == before
        fleet.gate(f"gate-{successor.pid}").open()
        assert await job.result(timeout=30) == successor.pid


@pytest.mark.covers("lagging-replica", "zombie-worker")
async def test_what_is_told_to_a_primary_that_is_none_any_more_is_not_on_record(
    own_redis: RedisServer, replica: RedisServer, switch: Switch, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(switch.url)
    app = fleet.app()
    async with app.scheduler:
        apart = await fleet.start(lease=LEASE)
        job = await app.wait_for_own.enqueue(fleet.gate().path)
        await fleet.entry("start", job=job.id, pid=apart.pid)
        await follows(replica, own_redis)
        await tell(replica, "REPLICAOF", "NO", "ONE")
        switch.turn(replica)

    async with app.scheduler:
        store = app.scheduler.store
        successor = await fleet.start(lease=LEASE)
        await fleet.entry("start", job=job.id, pid=successor.pid)
        before = (await store.get([job.id]))[0]
        fleet.gate(f"gate-{apart.pid}").open()
        await ended_at(own_redis, job.id)
        assert (await store.get([job.id]))[0] == before

        await asyncio.to_thread(own_redis.kill)
        await switch.cut()
        await until(lambda: "registers anew" in apart.log, what=lambda: f"a new identity in\n{apart.log}")
        fleet.gate(f"gate-{successor.pid}").open()
        (record,) = (await fleet.ended(store, [job.id])).values()
        successor.kill()
        other = await app.note.enqueue()
        await fleet.entry("start", job=other.id, pid=apart.pid)

    assert record.result == str(successor.pid)
    assert (record.state, record.fence, record.crashes) == (State.SUCCEEDED, before.fence, 1)


@pytest.mark.covers("lagging-replica")
async def test_whoever_is_connected_to_a_primary_that_became_a_replica_looks_where_the_address_leads_now(
    own_redis: RedisServer, replica: RedisServer, switch: Switch, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(switch.url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        await fleet.start(lease="6s")
        running = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=running.id)
        await follows(replica, own_redis)
        await tell(replica, "REPLICAOF", "NO", "ONE")
        await tell(own_redis, "REPLICAOF", HOST, str(replica.port))
        switch.turn(replica)
        gate.open()
        later = await accepted(app, app.note.call())
        records = await fleet.ended(app.scheduler.store, [running.id, later])

    assert {(r.state, r.crashes) for r in records.values()} == {(State.SUCCEEDED, 0)}


@pytest.mark.timeout(120)
@pytest.mark.covers("lagging-replica")
async def test_under_load_only_jobs_of_the_last_moments_are_lost_and_all_others_end_with_one_record(
    own_redis: RedisServer, replica: RedisServer, switch: Switch, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(switch.url)
    app = fleet.app()
    kept, doubtful = list[JobId](), list[JobId]()
    ends, lagging = asyncio.Event(), asyncio.Event()
    moments = 0

    async def load() -> None:
        while not ends.is_set():
            began = moments
            job_id = await accepted(app, app.work.call(0.02))
            (doubtful if lagging.is_set() or began != moments else kept).append(job_id)

    async def more(jobs: list[JobId]) -> None:
        enough = len(jobs) + 100
        await until(lambda: len(jobs) > enough, what=lambda: f"work: {len(jobs)}")

    async with app.scheduler:
        await fleet.start_many(2, lease="3s")
        await follows(replica, own_redis)
        clients = [asyncio.create_task(load()) for _ in range(4)]
        await more(kept)
        lagging.set()
        await follows(replica, own_redis)
        await tell(replica, "REPLICAOF", "NO", "ONE")
        await more(doubtful)
        moments += 1
        await take_over(switch, replica, own_redis)
        lagging.clear()
        await more(kept)
        ends.set()
        await asyncio.gather(*clients)
        store = app.scheduler.store
        there = [record.id for record in await available(lambda: store.get(doubtful))]
        records = await fleet.ended(store, [*kept, *there], within=60)
        counts = await store.counts()

    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    assert counts == {("default", State.SUCCEEDED): len(kept) + len(there)}
    assert len(there) < len(doubtful), "nothing was lost: this tests nothing"
