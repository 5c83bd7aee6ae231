"""A database server that is killed under load, and comes back: nothing is lost, and workers go on by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from signal import SIGTERM

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.job import JobId
from duetime.model.states import State
from tests.integration.kit import Fleet, FleetAt, accepted, until
from tools.servers import MariaDbServer, PostgresServer, RedisServer

RESTARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Mortal:
    """A server that keeps what it has acknowledged, however it ends."""

    url: str
    kill: Callable[[], None]
    start: Callable[[], None]


@pytest.fixture
def mortal_postgres(own_postgres: PostgresServer) -> Mortal:
    """Ends as with `pg_ctl stop -m immediate`."""
    url = own_postgres.create_database("mortal")
    return Mortal(url=url, kill=lambda: own_postgres.stop("immediate"), start=own_postgres.start)


@pytest.fixture
def mortal_mariadb(own_mariadb: MariaDbServer) -> Mortal:
    """Ends as with `kill -9`."""
    url = own_mariadb.create_database("mortal")
    return Mortal(url=url, kill=own_mariadb.kill, start=own_mariadb.start)


@pytest.fixture
def mortal_redis() -> Iterator[Mortal]:
    """Ends as with `kill -9`."""
    # While the disk is busy, `everysec` has answered before it has written.
    with RedisServer("--appendfsync", "always") as server:
        yield Mortal(url=server.url(), kill=server.kill, start=server.start)


@pytest.fixture(params=["postgres", "mariadb", "redis"])
def mortal(request: pytest.FixtureRequest) -> Mortal:
    """A server of each kind that lives in a process of its own."""
    server: Mortal = request.getfixturevalue(f"mortal_{request.param}")
    return server


async def more_starts(fleet: Fleet) -> None:
    """Wait for a while of work."""
    seen = len(fleet.ledger.entries("start"))
    await until(lambda: len(fleet.ledger.entries("start")) > seen + 50, what="work")


@pytest.mark.timeout(120)
@pytest.mark.covers("database-restart")
async def test_nothing_is_lost_when_the_server_is_killed_five_times_under_load(
    mortal: Mortal, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(mortal.url)
    app = fleet.app()
    ids: list[JobId] = []
    ends = asyncio.Event()

    async def load() -> None:
        while not ends.is_set():
            ids.append(await accepted(app, app.note.call()))
            ids.append(await accepted(app, app.work.options(delay=0.1).call(0.05)))

    async with app.scheduler:
        await fleet.start_many(2, lease="5s")
        clients = [asyncio.create_task(load()) for _ in range(4)]
        for _ in range(RESTARTS):
            await more_starts(fleet)
            await asyncio.to_thread(mortal.kill)
            await asyncio.to_thread(mortal.start)
        await more_starts(fleet)
        ends.set()
        await asyncio.gather(*clients)
        records = await fleet.ended(app.scheduler.store, ids, within=60)
        counts = await app.scheduler.store.counts()

    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    assert counts == {("default", State.SUCCEEDED): len(ids)}, "one record each, and no other"
    assert {entry.job for entry in fleet.ledger.entries("start")} == set(ids)


@pytest.mark.covers("database-restart")
async def test_while_the_server_is_dead_requests_are_refused_and_workers_wait(
    mortal: Mortal, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(mortal.url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        worker = await fleet.start()
        running = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=running.id)
        await asyncio.to_thread(mortal.kill)
        with pytest.raises(StoreUnavailable):
            await app.note.enqueue()
        gate.open()
        await fleet.entry("end", job=running.id)
        await until(lambda: "waits for the database" in worker.log, what="a word about it")
        await asyncio.to_thread(mortal.start)
        later = await accepted(app, app.note.call())
        records = await fleet.ended(app.scheduler.store, [running.id, later], within=60)

    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    assert len(fleet.ledger.entries("start", job=running.id)) == 1, (
        "its outcome was kept for when it can be written"
    )


@pytest.mark.covers("result-across-restart")
async def test_a_result_is_waited_for_while_the_server_is_dead_and_until_the_time_is_up(
    mortal: Mortal, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(mortal.url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        worker = await fleet.start()
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        blocking = await asyncio.to_thread(app.wait_for.sync.enqueue, gate.path)
        await fleet.entry("start", job=blocking.id)
        waiting = [
            asyncio.create_task(job.result(timeout=50)),
            asyncio.create_task(asyncio.to_thread(blocking.result, timeout=50)),
        ]
        await asyncio.to_thread(mortal.kill)
        with pytest.raises(TimeoutError) as error:
            await job.result(timeout=0.5)
        assert isinstance(error.value.__cause__, StoreUnavailable)
        gate.open()
        await asyncio.to_thread(mortal.start)
        assert await asyncio.gather(*waiting) == [worker.pid] * 2
        with pytest.raises(TimeoutError) as error:
            await (await app.wait_for.enqueue(str(fleet.folder / "closed"))).result(timeout=0.5)
        assert error.value.__cause__ is None, "the server answers again"


@pytest.mark.covers("database-restart")
async def test_a_worker_is_unhealthy_while_the_server_is_dead_and_recovers_by_itself(
    mortal: Mortal, fleet_at: FleetAt
) -> None:
    app = fleet_at(mortal.url).app()
    async with app.scheduler.worker() as worker:
        await (await app.note.enqueue()).result(timeout=30)
        assert worker.health.healthy
        await asyncio.to_thread(mortal.kill)
        await until(lambda: not worker.health.healthy, what="a worker that is unhealthy")
        await asyncio.to_thread(mortal.start)
        await until(
            lambda: worker.health.healthy, what=lambda: f"a worker that is well: {worker.health.failing}"
        )
        await (await app.note.enqueue()).result(timeout=30)


@pytest.mark.covers("graceful-stop")
async def test_a_worker_can_be_stopped_while_the_server_is_dead(mortal: Mortal, fleet_at: FleetAt) -> None:
    fleet = fleet_at(mortal.url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        worker = await fleet.start(grace="1s")
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        await asyncio.to_thread(mortal.kill)
        worker.signal(SIGTERM)
        await fleet.entry("cancelled", job=job.id)
        await until(lambda: worker.ended, what=lambda: f"the end of the process\n{worker.log}")
        await asyncio.to_thread(mortal.start)
        gate.open()
        heir = await fleet.start()
        record = (await fleet.ended(app.scheduler.store, [job.id]))[job.id]

    assert (record.state, record.result) == (State.SUCCEEDED, str(heir.pid))
