"""Many at once: bursts on one worker, writers on one file."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

import pytest

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.time import from_datetime
from tests.integration.kit import Fleet, FleetAt, Gate, until
from tests.integration.nursery import ROOT
from tests.integration.tasks import App
from tools.servers import Postgres

BURST = 5_000
WRITERS = 4
MOST_CONNECTIONS = 20


async def stored_per_process(url: str, gate: Gate) -> list[int]:
    """Let processes write for a while, all at the same time, and return how many jobs each has stored."""
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.integration.committer",
            url,
            gate.path,
            "3",
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(WRITERS)
    ]
    outputs = [process.stdout for process in processes]
    for output in outputs:
        assert output is not None
        assert await output.readline() == b"ready\n"
    gate.open()
    counts = [int(await output.read()) for output in outputs if output is not None]
    for process in processes:
        assert await process.wait() == 0
    return counts


@pytest.mark.timeout(90)
async def test_processes_that_write_to_one_file_as_fast_as_they_can_get_fair_shares(
    sqlite_url: str, tmp_path: Path
) -> None:
    async with App(sqlite_url).scheduler:
        pass
    tries: list[list[int]] = []
    for number in range(3):  # Other processes of this machine may take the processor from one of them.
        tries.append(await stored_per_process(sqlite_url, Gate(tmp_path / f"gate-{number}")))
        if min(tries[-1]) >= max(tries[-1]) / 2:
            return
    pytest.fail(f"stored per process: {tries}")


async def plant(app: App, *, due: datetime | None = None) -> list[JobId]:
    call = app.note.call if due is None else app.note.options(at=due).call
    ids: list[JobId] = []
    for _ in range(BURST // 1_000):
        ids += [handle.id for handle in await app.scheduler.enqueue_many([call() for _ in range(1_000)])]
    return ids


async def time_of_last_start(fleet: Fleet, ids: list[JobId], since: int) -> int:
    """Wait until all have started and return how long after `since` the last one did."""
    wanted = set(ids)
    await until(
        lambda: wanted <= {entry.job for entry in fleet.ledger.entries("start")}, what=f"{len(ids)} starts"
    )
    return max(entry.at for entry in fleet.ledger.entries("start") if entry.job in wanted) - since


async def drain_and_burst(fleet: Fleet, app: App) -> tuple[int, int]:
    """Return how long 5,000 waiting jobs take to drain, and how long 5,000 due at one instant."""
    await app.scheduler.queues.pause("default")
    planting = monotonic()
    waiting = await plant(app)
    planted_in = timedelta(seconds=monotonic() - planting)
    began = await app.scheduler.store.now()
    await app.scheduler.queues.resume("default")
    drain = await time_of_last_start(fleet, waiting, began)
    due = datetime.now(UTC) + timedelta(seconds=1) + 3 * planted_in
    burst = await plant(app, due=due)
    took = await time_of_last_start(fleet, burst, from_datetime(due))
    records = await fleet.ended(app.scheduler.store, [*waiting, *burst])
    assert {(r.state, r.failures, r.crashes) for r in records.values()} == {(State.SUCCEEDED, 0, 0)}
    assert all(r.started_at is not None and r.started_at >= r.due_at for r in records.values())
    return drain, took


async def burst_in_time(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        await fleet.start()
        figures: list[tuple[int, int]] = []
        for _ in range(3):  # Other processes of this machine may spoil a measurement.
            figures.append(await drain_and_burst(fleet, app))
            if figures[-1][1] <= 1.5 * figures[-1][0]:
                break
        else:
            pytest.fail(f"drain and burst of {BURST} in µs: {figures}")
    started = Counter(entry.job for entry in fleet.ledger.entries("start"))
    assert set(started.values()) == {1}


@pytest.mark.timeout(120)
@pytest.mark.covers("burst-at-one-instant")
async def test_five_thousand_jobs_due_at_one_instant_all_run_once_and_in_time(fleet: Fleet) -> None:
    await burst_in_time(fleet)


@pytest.mark.covers("burst-at-one-instant")
async def test_a_burst_takes_no_more_connections_than_quiet_work(
    postgres: Postgres, postgres_database: str, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(postgres.url(postgres_database))
    count = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{postgres_database}'"
    app = fleet.app()
    most = 0
    async with app.scheduler:
        await fleet.start()
        ids = await plant(app)
        while len(fleet.ledger.entries("start")) < len(ids):
            most = max(most, int(await asyncio.to_thread(postgres.execute, count)))

    assert 0 < most <= MOST_CONNECTIONS
