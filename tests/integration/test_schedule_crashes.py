"""Processes that run the jobs of a schedule are killed and restarted: the schedule goes on, and nothing overlaps."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta

import pytest

from duetime import at
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.triggers.at import At
from duetime.model.triggers.every import Every
from tests.integration.kit import Fleet, until
from tests.integration.ledger import Entry
from tests.integration.occurrences import NAME, PACE, put, records, skipped


async def started(fleet: Fleet, count: int) -> list[Entry]:
    """Wait until so many runs have started."""

    def found() -> list[Entry]:
        entries = fleet.ledger.entries("start")
        return entries if len(entries) >= count else []

    return await until(found, what=f"{count} starts")


@pytest.mark.covers("schedule-dies-with-worker")
async def test_the_next_occurrence_runs_elsewhere_when_the_process_that_runs_one_is_killed(
    fleet: Fleet,
) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        workers = await fleet.start_many(2)
        trigger = Every(interval=2 * PACE, start=await store.now() + PACE)
        await put(app.scheduler, NAME, "wait_for", trigger, args=(gate.path,))
        (first,) = await started(fleet, 1)
        victim, survivor = sorted(workers, key=lambda worker: worker.pid != first.pid)
        victim.kill()
        gate.open()
        entries = await started(fleet, 4)
        (interrupted,) = (await fleet.ended(store, [first.job])).values()
    assert {entry.pid for entry in entries if entry is not entries[0]} == {survivor.pid}
    assert interrupted.state is State.SUCCEEDED
    assert len({entry.job for entry in entries}) == 3


@pytest.mark.covers("overlapping-runs")
async def test_no_restart_or_registration_elsewhere_starts_a_second_run_beside_a_long_one(
    fleet: Fleet,
) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        await fleet.start(waiting=gate.path)
        (first,) = await started(fleet, 1)
        for restart in range(2):
            other = await fleet.start(waiting=gate.path)
            await skipped(app.scheduler.store, "overlap", least=2 * restart + 2, name="waiting")
            other.signal(signal.SIGTERM)
            await fleet.entry("stopped", pid=other.pid)
        assert [entry.job for entry in fleet.ledger.entries("start")] == [first.job]
        gate.open()
        entries = await started(fleet, 2)
        found = await records(app.scheduler.store, "waiting")
    assert entries[1].job != first.job
    assert {record.reason for record in found if record.state is State.SKIPPED} <= {"overlap", "misfire"}


@pytest.mark.covers("overlapping-runs")
async def test_a_run_that_cannot_be_ended_is_waited_for_until_its_process_dies(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        holder = await fleet.start()
        soon = At(instants=(await store.now() + PACE,))
        await put(app.scheduler, NAME, "wait_in_thread", soon, args=(gate.path,), overlap="cancel_running")
        (first,) = await started(fleet, 1)
        other = await fleet.start()
        await app.scheduler.schedules.edit(NAME, trigger=at(datetime.now(UTC) + timedelta(seconds=2)))

        async def flagged() -> list[StoredJob]:
            found = await records(store)
            return found if len(found) == 2 and found[0].cancel_requested_at is not None else []

        _, second = await until(flagged, what="the request to end the first run")
        assert second.state is State.PENDING
        assert [entry.job for entry in fleet.ledger.entries("start")] == [first.job]
        holder.kill()
        entry = await fleet.entry("start", job=second.id)
        assert entry.pid == other.pid
        gate.open()
        ended = await fleet.ended(store, [first.job, second.id])
    assert (ended[first.job].state, ended[second.id].state) == (State.CANCELLED, State.SUCCEEDED)
