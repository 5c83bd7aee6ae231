"""A database that is not there at the start, is none, or is behind a pooler."""

from __future__ import annotations

from pathlib import Path

import pytest

from duetime import Scheduler
from duetime.errors import StoreError, StoreUnavailable, StoreUnusable
from duetime.model.states import State
from tests.integration.kit import FleetAt, read_all, until
from tools.servers.process import free_port


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
