"""What is run, skipped, foreseen or made up for of a schedule, beside its own times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from duetime.model import schedule_moves as moves
from duetime.model.audit import AuditEntry
from duetime.model.backfilling import MOST_BACKFILLED, to_backfill
from duetime.model.instants import Instant
from duetime.model.job import NewJob
from duetime.model.occurrence import made_up
from duetime.model.overlap import in_turn
from duetime.model.schedule import StoredSchedule
from duetime.model.spans import cuts, gives_way
from duetime.model.states import State
from duetime.model.stored import StoredJob
from duetime.model.triggers.preview import Upcoming
from duetime.model.triggers.text import from_text, trigger_of
from duetime.model.upcoming import upcoming
from duetime.scheduler.altering import readings, write
from duetime.scheduler.schedule_records import Backfill
from duetime.stores.base import JobFilter, Store

_CHUNK: Final = 500
"""How many jobs are stored in one transaction."""


async def skip_next(store: Store, name: str, *, who: str) -> Instant:
    """Have the next occurrence of a schedule not run, and return it."""
    occurrence = 0
    async for before, now in readings(store, name):
        planted = await _planted(store, name, now=now)
        occurrence, change = moves.skip(before, planted=planted, who=who)
        if await write(store, [change]):
            break
    return occurrence


async def foresee(
    store: Store, schedule: StoredSchedule, *, after: Instant | None, count: int
) -> Sequence[Upcoming]:
    """Return the next occurrences of a schedule, with notes."""
    start = await store.now() if after is None else after
    ahead: Sequence[StoredJob] = ()
    if schedule.fired_through > start:
        ahead = await store.occurrences(
            schedule.name, since=start, until=schedule.fired_through, limit=MOST_BACKFILLED
        )
    skipped = {
        job.occurrence: job.reason or "skipped"
        for job in ahead
        if job.state is State.SKIPPED and job.occurrence is not None
    }
    return upcoming(schedule, trigger_of(schedule), after=start, count=count, skipped=skipped)


async def make_up_for(
    store: Store, schedule: StoredSchedule, *, start: Instant, end: Instant, dry_run: bool, who: str
) -> Backfill:
    """Store a job for each occurrence of a stretch of time that has none."""
    trigger = from_text(schedule.trigger)
    wanted = to_backfill(schedule, trigger, start=start, end=end, now=await store.now())
    made = await _made(store, schedule, wanted)
    missing = [occurrence for occurrence in wanted if occurrence not in made]
    enqueued = len(missing)
    if not dry_run:
        turns = in_turn(schedule, beside=True)
        jobs = [made_up(schedule, occurrence, in_turn=turns) for occurrence in missing]
        detail = {"start": start, "end": end}
        # One entry for all: it is kept once, with the first that is stored.
        entry = AuditEntry(verb="backfill", target=schedule.name, who=who, detail=detail)
        chunks = [jobs[first : first + _CHUNK] for first in range(0, len(jobs), _CHUNK)]
        enqueued = sum([await _store(store, chunk, entry, schedule) for chunk in chunks])
    return Backfill(occurrences=len(wanted), enqueued=enqueued, already=len(wanted) - enqueued)


async def _planted(store: Store, name: str, *, now: Instant) -> Instant | None:
    """Return the first occurrence whose job is there and waits for its time, if there is one."""
    found: list[Instant] = []
    for state, claims in ((State.PENDING, 0), (State.RUNNING, 1)):
        jobs = await store.find(JobFilter(schedule=name, state=state, limit=MOST_BACKFILLED))
        waiting = [job for job in jobs if job.due_at > now and job.started_at is None]
        # One that was claimed before may have begun, and waits for something else.
        found += [
            job.occurrence
            for job in waiting
            if job.occurrence is not None and (job.occurrence > now or job.fence == claims)
        ]
    return min(found, default=None)


async def _made(
    store: Store, schedule: StoredSchedule, wanted: Sequence[Instant]
) -> frozenset[Instant | None]:
    """Return the occurrences in a stretch of time that have a job."""
    if not wanted:
        return frozenset()
    found = await store.occurrences(
        schedule.name, since=wanted[0], until=wanted[-1], limit=2 * MOST_BACKFILLED
    )
    return frozenset(job.occurrence for job in found if not gives_way(job))


async def _store(store: Store, jobs: Sequence[NewJob], entry: AuditEntry, schedule: StoredSchedule) -> int:
    """Store jobs in place of the records that they did not run, and return how many."""
    wanted = [job.occurrence for job in jobs if job.occurrence is not None]
    trigger = from_text(schedule.trigger)
    async for _ in readings(store, schedule.name):
        found = await store.occurrences(
            schedule.name, since=wanted[0], until=wanted[-1], limit=2 * MOST_BACKFILLED
        )
        ids = await store.backfill(jobs, entry, cuts=cuts(found, wanted, schedule, trigger))
        if ids is not None:
            return len(ids)
    return 0
