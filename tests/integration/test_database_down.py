"""A database that is away: at the start, in the middle, again and again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest

from duetime import Scheduler
from duetime.errors import StoreError, StoreUnavailable, StoreUnusable
from duetime.model.job import JobId
from duetime.model.states import State
from duetime.scheduler.task import Call
from tests.integration.kit import Fleet, FleetAt, read_all, until
from tests.integration.tasks import App
from tools.servers import PostgresServer
from tools.servers.process import free_port

RESTARTS = 5


async def accepted(app: App, call: Call[Any]) -> JobId:
    """Enqueue one request, again and again until it is accepted; its id makes that harmless."""
    while True:
        try:
            return (await app.scheduler.enqueue(call)).id
        except StoreUnavailable:
            await asyncio.sleep(0.02)


async def more_starts(fleet: Fleet) -> None:
    """Wait for a while of work."""
    seen = len(fleet.ledger.entries("start"))
    await until(lambda: len(fleet.ledger.entries("start")) > seen + 50, what="work")


@pytest.mark.timeout(120)
@pytest.mark.covers("database-restart")
async def test_nothing_is_lost_when_postgresql_crashes_five_times_under_load(
    own_postgres: PostgresServer, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(own_postgres.create_database("crashing"))
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
            await asyncio.to_thread(own_postgres.restart, "immediate")
        await more_starts(fleet)
        ends.set()
        await asyncio.gather(*clients)
        records = await fleet.ended(app.scheduler.store, ids, within=60)

    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    assert {entry.job for entry in fleet.ledger.entries("start")} == set(ids)


@pytest.mark.covers("database-restart")
async def test_while_the_database_is_away_requests_are_refused_and_workers_wait(
    own_postgres: PostgresServer, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(own_postgres.create_database("away"))
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        worker = await fleet.start()
        running = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=running.id)
        await asyncio.to_thread(own_postgres.stop, "immediate")
        with pytest.raises(StoreUnavailable):
            await app.note.enqueue()
        gate.open()
        await fleet.entry("end", job=running.id)
        await until(lambda: "waits for the database" in worker.log, what="a word about it")
        await asyncio.to_thread(own_postgres.start)
        later = await accepted(app, app.note.call())
        records = await fleet.ended(app.scheduler.store, [running.id, later], within=60)

    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    assert len(fleet.ledger.entries("start", job=running.id)) == 1, (
        "its outcome was kept for when it can be written"
    )


@pytest.mark.covers("graceful-stop")
async def test_a_worker_can_be_stopped_while_the_database_is_away(
    own_postgres: PostgresServer, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(own_postgres.create_database("away"))
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        worker = await fleet.start(grace="1s")
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        await asyncio.to_thread(own_postgres.stop, "immediate")
        worker.signal(SIGTERM)
        await fleet.entry("cancelled", job=job.id)
        await until(lambda: worker.ended, what=lambda: f"the end of the process\n{worker.log}")
        await asyncio.to_thread(own_postgres.start)
        gate.open()
        heir = await fleet.start()
        record = (await fleet.ended(app.scheduler.store, [job.id]))[job.id]

    assert (record.state, record.result) == (State.SUCCEEDED, str(heir.pid))


async def test_a_database_that_is_not_there_at_the_start_is_told_as_such() -> None:
    scheduler = Scheduler(f"postgresql://postgres@127.0.0.1:{free_port()}/nowhere")
    with pytest.raises(StoreUnavailable):
        await scheduler.open()
    with pytest.raises(StoreUnavailable):
        async with scheduler.worker():
            pytest.fail("a worker without a database")


async def test_a_file_that_is_not_a_database_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, and longer than its header would be\n" * 100)
    with pytest.raises(StoreUnusable, match=r"notes\.txt"):
        await Scheduler(f"sqlite:///{path}").open()
    assert path.read_text().startswith("not a database")


async def test_a_folder_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="missing"):
        await Scheduler(f"sqlite:///{tmp_path / 'missing' / 'jobs.db'}").open()


@pytest.mark.timeout(90)
async def test_workers_behind_a_pooler_in_transaction_mode_do_everything(
    pgbouncer_url: str, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(pgbouncer_url)
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        await fleet.start_many(2, lease="3s", ticking=True)
        running = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=running.id)
        handles = await app.scheduler.enqueue_many(
            [app.note.options(delay=0.01 * number).call() for number in range(100)]
        )
        await fleet.ended(store, [handle.id for handle in handles])
        assert await app.scheduler.jobs.cancel(running.id) == "requested"
        record = (await fleet.ended(store, [running.id]))[running.id]
        await until(lambda: any(e.task == "tick" for e in fleet.ledger.entries("start")), what="a tick")
        records = await read_all(store, [handle.id for handle in handles])

    assert record.state is State.CANCELLED
    assert {r.state for r in records.values()} == {State.SUCCEEDED}
    assert len([e for e in fleet.ledger.entries("start") if e.task == "note"]) == 100
