"""Jobs over time in four processes: each runs once, whoever is killed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND, Instant, from_datetime
from duetime.stores.base import Store
from tests.integration.kit import Fleet, until
from tests.integration.ledger import starts_by_job
from tests.integration.occurrences import stood_for
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


def seconds_from(begin: datetime) -> Sequence[Instant]:
    """The full seconds of the span."""
    first = (from_datetime(begin) // SECOND + 1) * SECOND
    return range(first, first + SPAN.seconds * SECOND, SECOND)


async def ticks_of(store: Store, seconds: Sequence[Instant]) -> list[StoredJob]:
    """Wait until each of these seconds has a final record of the tick, and return those, once it is one each."""

    async def ended() -> list[StoredJob]:
        found = await store.occurrences("tick", since=seconds[0], until=seconds[-1], limit=200)
        whole = bool(found) and (found[-1].occurrence or 0) >= seconds[-1]
        return found if whole and all(job.state.terminal for job in found) else []

    found = await until(ended, what=f"ticks up to {seconds[-1]}")
    told = Counter(second for job in found for second in stood_for(job, SECOND) if second in seconds)
    assert told == Counter(seconds)
    return found


async def progress(fleet: Fleet, share: float) -> None:
    """Wait until a share of the jobs has started."""
    await until(lambda: len(fleet.ledger.entries("start")) > share * JOBS, what=f"a share of {share}")


@pytest.mark.timeout(120)
@pytest.mark.covers("double-claim", "run-record")
async def test_two_thousand_jobs_and_a_tick_a_second_run_once_each_and_never_early(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        await fleet.start_many(PROCESSES, ticking=True)
        ids, begin = await plant(app)
        records = await fleet.ended(app.scheduler.store, ids, within=40)
        ticks = await ticks_of(app.scheduler.store, seconds_from(begin))

    started = fleet.ledger.entries("start")
    assert Counter(entry.job for entry in started if entry.task == "note") == Counter(ids)
    assert all(entry.at >= entry.due_at for entry in started)
    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    ran = Counter(tick.id for tick in ticks if tick.state is State.SUCCEEDED)
    assert Counter(entry.job for entry in started if entry.job in {tick.id for tick in ticks}) == ran
    # A machine that is busy for longer than a second misses some.
    assert {tick.reason for tick in ticks} <= {None, "misfire", "overlap"}
    assert len(ran) > SPAN.seconds // 2
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
        ticks = await ticks_of(app.scheduler.store, seconds_from(begin))

    started = fleet.ledger.entries("start")
    starts = starts_by_job(started)
    assert set(ids) <= set(starts)
    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    assert all(entry.at >= entry.due_at for entry in started)
    # Only the death of the process that had started a job starts it again.
    assert {entry.pid for each in starts.values() for entry in each[:-1]} <= killed
    assert max(Counter((entry.job, entry.pid) for entry in started).values()) == 1
    assert {tick.state for tick in ticks} <= {State.SUCCEEDED, State.SKIPPED}
