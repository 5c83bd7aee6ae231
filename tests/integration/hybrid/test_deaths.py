"""Either server, or any worker, is killed in the midst of work: what a store promises to keep is kept, and nothing runs twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from signal import SIGTERM

import pytest

from duetime import failpoints
from duetime.errors import StoreUnavailable
from duetime.model.job import JobId
from duetime.model.states import State
from tests.integration.kit import Fleet, FleetAt, accepted, available, until
from tests.integration.tasks import App
from tests.support.stores import hybrid_of
from tools.servers import PostgresServer, RedisServer

RESTARTS = 3


@pytest.fixture
def near() -> Iterator[RedisServer]:
    """A near store that keeps what it has acknowledged, however it ends."""
    with RedisServer("--appendfsync", "always") as server:
        yield server


@pytest.fixture
def forgetful() -> Iterator[RedisServer]:
    """One that keeps nothing."""
    with RedisServer("--appendonly", "no") as server:
        yield server


@pytest.fixture
def far_url(own_postgres: PostgresServer) -> str:
    """The far store."""
    return own_postgres.create_database("far")


class Load:
    """Clients that enqueue jobs, again and again, until each is accepted: some of both stores, and one of far jobs alone.

    A call whose answer was lost waits for the store that it was sent to, so while near is down all those of both may wait.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self.near: list[JobId] = []
        self.far: list[JobId] = []
        self._ends = asyncio.Event()

    @asynccontextmanager
    async def going_on(self, clients: int = 3) -> AsyncIterator[None]:
        """Enqueue until the block ends, and what is under way then; a block that fails waits for nothing."""
        tasks = [asyncio.create_task(self._enqueue(both=number > 0)) for number in range(clients + 1)]
        try:
            yield
            self._ends.set()
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _enqueue(self, *, both: bool) -> None:
        app = self._app
        while not self._ends.is_set():
            if both:
                self.near.append(await accepted(app, app.note.call()))
                self.near.append(await accepted(app, app.work.options(delay=0.1).call(0.02)))
            self.far.append(await accepted(app, app.work_once.call(0.01)))
            self.far.append(await accepted(app, app.note.options(key=str(len(self.far))).call()))


async def more_starts(fleet: Fleet, *, of: str | None = None) -> None:
    """Wait for a while of work."""

    def count() -> int:
        return sum(of in (None, entry.task) for entry in fleet.ledger.entries("start"))

    seen = count()
    await until(lambda: count() > seen + 30, what=f"work of {of or 'any task'}")


@pytest.mark.parametrize("dies", ["near", "far"])
@pytest.mark.timeout(180)
@pytest.mark.covers("near-store-down", "far-store-down", "stored-in-two")
async def test_nothing_is_lost_or_doubled_when_either_server_is_killed_under_load(
    near: RedisServer, own_postgres: PostgresServer, far_url: str, fleet_at: FleetAt, dies: str
) -> None:
    fleet = fleet_at(hybrid_of(near.url(), far_url))
    app = fleet.app()
    load = Load(app)
    async with app.scheduler:
        await fleet.start_many(2)
        async with load.going_on():
            for _ in range(RESTARTS):
                await more_starts(fleet)
                if dies == "near":
                    await asyncio.to_thread(near.kill)
                    await more_starts(fleet, of="work_once")
                    await asyncio.to_thread(near.start)
                else:
                    await asyncio.to_thread(own_postgres.stop, "immediate")
                    await asyncio.to_thread(own_postgres.start)
            await more_starts(fleet)
        ids = [*load.near, *load.far]
        records = await fleet.ended(app.scheduler.store, ids, within=60)
        counts = await app.scheduler.store.counts()

    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    assert counts == {("default", State.SUCCEEDED): len(ids)}, "one record each, and no other"
    starts = Counter(entry.job for entry in fleet.ledger.entries("start"))
    assert starts == dict.fromkeys(ids, 1)


@pytest.mark.timeout(120)
@pytest.mark.covers("near-store-down")
async def test_a_near_store_that_forgets_takes_along_what_waited_there_and_nothing_else(
    forgetful: RedisServer, far_url: str, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(hybrid_of(forgetful.url(), far_url))
    app = fleet.app()
    async with app.scheduler:
        await fleet.start(lease="2s")
        waits_near = await app.note.options(delay="4m").enqueue()
        waits_far = [await app.note.options(delay=delay).enqueue() for delay in ("6m", "2h")]
        # Its longest delay is that of a store that keeps nothing.
        assert [len(await part.get([waits_far[0].id])) for part in app.scheduler.store.parts] == [0, 1]
        await asyncio.to_thread(forgetful.kill)
        with pytest.raises(StoreUnavailable):
            await app.note.enqueue()
        meanwhile = await app.note.enqueue()
        await fleet.entry("start", job=meanwhile.id)
        assert (await meanwhile.record()).state in {State.RUNNING, State.SUCCEEDED}, "it went far"
        await asyncio.to_thread(forgetful.start)

        async def is_back() -> bool:
            job = await available(app.note.enqueue)
            await fleet.entry("start", job=job.id)
            return bool(await app.scheduler.store.parts[0].get([job.id]))

        await until(is_back, what="jobs that live near again")
        found = await app.scheduler.store.get([waits_near.id, *(job.id for job in waits_far)])

    assert [job.id for job in found] == [job.id for job in waits_far]


@pytest.mark.covers("stored-in-two")
async def test_a_call_whose_answer_was_lost_with_the_near_store_is_not_stored_far_as_well(
    near: RedisServer, far_url: str, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(hybrid_of(near.url(), far_url))
    app = fleet.app()
    async with app.scheduler:
        call = app.note.call()
        failpoints.arm("after:enqueue:raise")
        try:
            with pytest.raises(StoreUnavailable, match="told to fail"):
                await app.scheduler.enqueue(call)
        finally:
            failpoints.arm(None)
        await asyncio.to_thread(near.kill)
        with pytest.raises(StoreUnavailable):
            await app.scheduler.enqueue(call)
        other = await app.note.enqueue()
        await asyncio.to_thread(near.start)
        stored = await accepted(app, call)
        parts = app.scheduler.store.parts
        assert [len(await part.get([stored])) for part in parts] == [1, 0]
        assert [len(await part.get([other.id])) for part in parts] == [0, 1]


@pytest.mark.timeout(120)
@pytest.mark.covers("far-store-down")
async def test_while_the_far_store_is_down_near_jobs_run_and_far_ones_are_refused(
    near: RedisServer, own_postgres: PostgresServer, far_url: str, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(hybrid_of(near.url(), far_url))
    app = fleet.app()
    async with app.scheduler:
        worker = await fleet.start()
        await app.note.enqueue()
        await asyncio.to_thread(own_postgres.stop, "immediate")
        for _ in range(5):
            job = await app.note.enqueue()
            assert (await job.record()).id == job.id, "it is found without the far store"
            await fleet.entry("start", job=job.id)
            with pytest.raises(StoreUnavailable):
                await app.note.options(delay="2h").enqueue()
        with pytest.raises(StoreUnavailable):
            await app.scheduler.jobs.list()
        await asyncio.to_thread(own_postgres.start)
        later = await accepted(app, app.work_once.call(0))
        await fleet.ended(app.scheduler.store, [later], within=60)
        assert not worker.ended


@pytest.mark.timeout(120)
@pytest.mark.covers("worker-killed")
async def test_the_jobs_of_a_worker_that_is_killed_are_taken_over_in_both_stores(
    near: RedisServer, far_url: str, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(hybrid_of(near.url(), far_url))
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        victim = await fleet.start()
        again = await app.wait_for.enqueue(gate.path)
        far_again = await app.wait_for.options(key="far").enqueue(gate.path)
        never = await app.wait_for_once.enqueue(gate.path)
        for job in (again, far_again, never):
            await fleet.entry("start", job=job.id, pid=victim.pid)
        heir = await fleet.start()
        victim.kill()
        for job in (again, far_again):
            await fleet.entry("start", job=job.id, pid=heir.pid)
        gate.open()
        records = await fleet.ended(app.scheduler.store, [again.id, far_again.id, never.id])
        states = {worker.state for worker in await app.scheduler.workers.list() if worker.pid == victim.pid}

    assert [records[job.id].state for job in (again, far_again, never)] == [
        State.SUCCEEDED,
        State.SUCCEEDED,
        State.FAILED,
    ]
    assert [records[job.id].crashes for job in (again, far_again, never)] == [1, 1, 1]
    assert states == {"dead"}
    assert len(fleet.ledger.entries("start", job=never.id)) == 1


@pytest.mark.covers("graceful-stop")
async def test_a_worker_that_is_told_to_stop_ends_its_jobs_of_both_stores(
    near: RedisServer, far_url: str, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(hybrid_of(near.url(), far_url))
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        worker = await fleet.start()
        jobs = [await app.wait_for.enqueue(gate.path), await app.wait_for_once.enqueue(gate.path)]
        for job in jobs:
            await fleet.entry("start", job=job.id)
        worker.signal(SIGTERM)
        await until(
            lambda: worker.log.count("waiting up to 30 seconds for 1 running job") == 2, what="a stop"
        )
        gate.open()
        await fleet.entry("stopped", pid=worker.pid)
        records = await app.scheduler.store.get([job.id for job in jobs])
        assert [known.state for known in await app.scheduler.store.workers()] == ["stopped"]
    assert [record.state for record in records] == [State.SUCCEEDED] * 2
    assert worker.errors == []
