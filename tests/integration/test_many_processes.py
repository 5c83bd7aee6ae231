"""Jobs over time in four processes: each runs once, whoever is killed."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from duetime.model.instants import SECOND, from_datetime
from duetime.model.job import JobId, StoredJob
from duetime.model.states import State
from duetime.stores.base import JobFilter, Store
from tests.integration.kit import Fleet, until
from tests.integration.ledger import Entry
from tests.integration.tasks import App

PROCESSES = 4
JOBS = 2_000
SPAN = timedelta(seconds=10)
LEAD = timedelta(seconds=1)


async def plant(app: App) -> tuple[list[JobId], datetime]:
    """Enqueue jobs at random instants of the span and return their ids and its beginning."""
    begin = datetime.now(UTC) + LEAD
    moments = [begin + random.random() * SPAN for _ in range(JOBS)]
    handles = await app.scheduler.enqueue_many([app.note.options(at=moment).call() for moment in moments])
    return [handle.id for handle in handles], begin


async def occurrences(store: Store, *, first: int, count: int) -> list[StoredJob]:
    """Wait until so many ticks, one a second from the first on, have ended, and return them in order."""
    wanted = [first + number * SECOND for number in range(count)]

    async def ended() -> list[StoredJob]:
        jobs = await store.find(JobFilter(task="tick", limit=200))
        chosen = sorted((j for j in jobs if j.occurrence in wanted), key=lambda job: job.occurrence or 0)
        return chosen if len(chosen) == count and all(job.state.terminal for job in chosen) else []

    return await until(ended, what=f"{count} ticks from {first}")


async def progress(fleet: Fleet, share: float) -> None:
    """Wait until a share of the jobs has started."""
    await until(lambda: len(fleet.ledger.entries("start")) > share * JOBS, what=f"a share of {share}")


def starts_by_job(entries: list[Entry], task: str) -> dict[JobId, list[Entry]]:
    """Group the starts of a task."""
    found: dict[JobId, list[Entry]] = {}
    for entry in entries:
        if entry.task == task:
            found.setdefault(entry.job, []).append(entry)
    return found


@pytest.mark.timeout(120)
@pytest.mark.covers("double-claim", "run-record")
async def test_two_thousand_jobs_and_a_tick_a_second_run_once_each_and_never_early(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        await fleet.start_many(PROCESSES, ticking=True)
        ids, begin = await plant(app)
        records = await fleet.ended(app.scheduler.store, ids, within=40)
        first = (from_datetime(begin) // SECOND + 1) * SECOND
        ticks = await occurrences(app.scheduler.store, first=first, count=SPAN.seconds)

    started = fleet.ledger.entries("start")
    assert Counter(entry.job for entry in started if entry.task == "note") == Counter(ids)
    assert all(entry.at >= entry.due_at for entry in started)
    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    assert {tick.state for tick in ticks} == {State.SUCCEEDED}
    ticked = starts_by_job(started, "tick")
    assert [len(ticked[tick.id]) for tick in ticks] == [1] * len(ticks)
    assert len({entry.pid for entry in started}) > 1, "one process did everything"


@pytest.mark.timeout(120)
@pytest.mark.covers("worker-killed")
async def test_with_workers_killed_in_the_middle_every_job_still_ends_exactly_once(fleet: Fleet) -> None:
    app = fleet.app()
    killed: set[int] = set()
    async with app.scheduler:
        workers = await fleet.start_many(PROCESSES, ticking=True)
        ids, begin = await plant(app)
        for share, victim in zip((0.25, 0.5, 0.75), workers, strict=False):
            await progress(fleet, share)
            victim.kill()
            killed.add(victim.pid)
            fleet.launch(ticking=True)
        records = await fleet.ended(app.scheduler.store, ids, within=40)
        first = (from_datetime(begin) // SECOND + 1) * SECOND
        ticks = await occurrences(app.scheduler.store, first=first, count=SPAN.seconds)

    started = fleet.ledger.entries("start")
    notes = starts_by_job(started, "note")
    assert set(notes) == set(ids)
    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    assert all(entry.at >= entry.due_at for entry in started)
    # Only the death of the process that had started a job starts it again.
    again = [entry for starts in notes.values() for entry in starts[:-1]]
    assert {entry.pid for entry in again} <= killed
    assert max(Counter((entry.job, entry.pid) for entry in started).values()) == 1
    assert {tick.state for tick in ticks} <= {State.SUCCEEDED, State.SKIPPED}
