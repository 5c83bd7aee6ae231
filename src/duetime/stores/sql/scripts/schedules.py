"""Schedules: add, change, fire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from duetime.model.audit import ITSELF, AuditEntry, StoredEntry
from duetime.model.instants import Instant, Micros
from duetime.model.job import JobId, NewJob, StoredJob
from duetime.model.schedule import Change, Firing, StoredSchedule
from duetime.model.worker import WorkerId
from duetime.stores.base import DueSchedules
from duetime.stores.sql import rows
from duetime.stores.sql.driver import Query, Row, Script
from duetime.stores.sql.loader import Statements
from duetime.stores.sql.scripts import control
from duetime.stores.sql.scripts.jobs import insertion

SUPERSEDED = "superseded by the next occurrence"


class Written(NamedTuple):
    """Which schedules were written, and which workers hold jobs of theirs that must not start or must end."""

    names: frozenset[str]
    workers: frozenset[WorkerId]


def write(sql: Statements, changes: Sequence[Change]) -> Script[Written]:
    """Add and change schedules that are as they were read, with all that belongs to each."""
    added = [change for change in changes if change.before is None]
    edited = [change for change in changes if change.before is not None]
    names = frozenset[str]()
    if added:
        found = yield Query(sql.add_schedules, {"rows": rows.new_schedules(c.after for c in added)})
        names |= _names(found)
    if edited:
        found = yield Query(sql.change_schedules, {"rows": rows.schedule_changes(edited)})
        names |= _names(found)
    written = [change for change in changes if change.after.name in names]
    workers = yield from _withdraw(sql, [change for change in written if change.withdraw is not None])
    jobs = [job for change in written for job in change.jobs]
    if jobs:
        yield insertion(sql, jobs)
    yield from note(sql, [change.entry for change in written if change.entry is not None])
    return Written(names, workers)


def note(sql: Statements, entries: Sequence[AuditEntry]) -> Script[None]:
    """Keep who did what."""
    if entries:
        yield Query(sql.add_entries, {"rows": rows.entries(entries)})


def due_schedules(sql: Statements, *, ahead: Micros, limit: int) -> Script[DueSchedules]:
    """List the schedules to fire, and tell when the next one comes up."""
    due = yield Query(sql.due_schedules, {"ahead": ahead, "limit": limit + 1})
    found = yield Query(sql.next_schedule, {"ahead": ahead})
    now, next_at, resumes_at = found[0]
    schedules = [rows.schedule(row) for row in due]
    # One more than asked for: whether others are due already, beyond the limit.
    next_at = schedules[limit].next_at if schedules[limit:] else next_at
    if resumes_at is None or resumes_at > now:
        # What goes on later is looked at then, not earlier.
        return DueSchedules(now, schedules[:limit], next_at, resumes_at)
    resuming = yield Query(sql.resuming_schedules, {"limit": limit})
    return DueSchedules(now, [*map(rows.schedule, resuming), *schedules][:limit], next_at, None)


def fire(sql: Statements, firings: Sequence[Firing]) -> Script[Written]:
    """Move schedules on by compare-and-set and store the jobs of those that moved."""
    moves = [
        (f.name, f.rev, f.expected, f.fired_through, f.next_at, f.made, f.pause, int(f.resumes), ITSELF)
        for f in firings
    ]
    moved = yield Query(sql.fire, {"rows": rows.batch(moves)})
    applied = _names(moved)
    fired = [firing for firing in firings if firing.name in applied]
    workers = frozenset[WorkerId]()
    if ending := [firing.name for firing in fired if firing.cancels]:
        workers = yield from _supersede(sql, ending)
    jobs = [job for firing in fired for job in firing.jobs]
    if jobs:
        yield insertion(sql, jobs)
    yield from note(sql, [entry for firing in fired for entry in _entries(firing)])
    return Written(applied, workers)


def delete(sql: Statements, name: str, entry: AuditEntry) -> Script[Written]:
    """Forget a schedule and withdraw what it has planted."""
    found = yield Query(sql.delete_schedule, {"name": name})
    if not found:
        return Written(frozenset(), frozenset())
    values = {"rows": rows.batch([(name, "schedule deleted")])}
    yield Query(sql.withdraw, values)
    flagged = yield Query(sql.withdraw_claimed, values)
    yield from note(sql, [entry])
    return Written(_names(found), _holders(flagged))


def get_schedules(sql: Statements, names: Iterable[str]) -> Script[list[StoredSchedule]]:
    """Read schedules by name."""
    found = yield Query(sql.get_schedules, {"rows": rows.batch((name,) for name in names)})
    return [rows.schedule(row) for row in found]


def occurrences(
    sql: Statements, name: str, *, since: Instant, until: Instant, limit: int
) -> Script[list[StoredJob]]:
    """Read the records of a schedule for a stretch of time."""
    values = {"schedule": name, "since": since, "until": until, "limit": limit}
    found = yield Query(sql.occurrences, values)
    return [rows.job(row) for row in found]


def past_occurrences(
    sql: Statements, name: str, *, until: Instant, limit: int, made: bool
) -> Script[list[StoredJob]]:
    """Read the records of a schedule up to an instant, latest first."""
    values = {"schedule": name, "until": until, "limit": limit, "made": int(made)}
    found = yield Query(sql.past_occurrences, values)
    return [rows.job(row) for row in found]


def backfill(sql: Statements, jobs: Sequence[NewJob], entry: AuditEntry) -> Script[list[JobId]]:
    """Store jobs for occurrences that have none; records of what was skipped give way."""
    taken = [(job.schedule, job.occurrence) for job in jobs]
    yield Query(sql.give_up_occurrences, {"rows": rows.batch(taken)})
    yield insertion(sql, jobs)
    found = yield Query(sql.occurrence_ids, {"rows": rows.batch(taken)})
    stored = {row[2] for row in found}
    ids = [job.id for job in jobs if job.id in stored]
    yield from note(sql, [entry])
    return ids


def entries(sql: Statements, target: str, *, limit: int, before: str | None) -> Script[list[StoredEntry]]:
    """Read what was done to something, newest first."""
    found = yield Query(sql.entries, {"target": target, "limit": limit, "before": before})
    return [rows.entry(row) for row in found]


def _withdraw(sql: Statements, changes: Sequence[Change]) -> Script[frozenset[WorkerId]]:
    """Take back planted jobs; return the workers that hold some of them.

    The schedule is put back to before them, or a change a moment before an occurrence would swallow it.
    """
    if not changes:
        return frozenset()
    values = {"rows": rows.batch((change.after.name, change.withdraw) for change in changes)}
    withdrawn = yield Query(sql.withdraw, values)
    first: dict[str, Instant] = {}
    for name, occurrence in withdrawn:
        first[name] = min(occurrence, first.get(name, occurrence))
    if back := [row for change in changes if (row := _rewound(change, first)) is not None]:
        yield Query(sql.rewind, {"rows": rows.batch(back)})
    return _holders((yield Query(sql.withdraw_claimed, values)))


def _rewound(change: Change, first: dict[str, Instant]) -> tuple[str, Instant, Instant | None] | None:
    occurrence = first.get(change.after.name)
    if occurrence is None:
        return None
    if change.again:
        return change.after.name, occurrence - 1, occurrence
    return None if change.floor is None else (change.after.name, change.floor, None)


def _supersede(sql: Statements, names: Sequence[str]) -> Script[frozenset[WorkerId]]:
    found = yield Query(sql.live_jobs, {"rows": rows.batch((name,) for name in names)})
    ended = yield from control.cancel(sql, [row[0] for row in found], reason=SUPERSEDED)
    return ended.workers


def _entries(firing: Firing) -> list[AuditEntry]:
    """What a firing does to its schedule beside moving it on."""
    said: list[AuditEntry] = []
    if firing.resumes:
        said.append(
            AuditEntry(verb="resume", target=firing.name, who=ITSELF, detail={"reason": "its time was over"})
        )
    if firing.pause is not None:
        said.append(AuditEntry(verb="pause", target=firing.name, who=ITSELF, detail={"reason": firing.pause}))
    return said


def _holders(found: Sequence[Row]) -> frozenset[WorkerId]:
    return frozenset(row[0] for row in found if row[0] is not None)


def _names(found: Sequence[Row]) -> frozenset[str]:
    return frozenset(row[0] for row in found)
