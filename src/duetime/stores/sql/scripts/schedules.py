"""Schedules: add, change, fire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from duetime.model.audit import ITSELF, AuditEntry, StoredEntry
from duetime.model.instants import Instant, Micros
from duetime.model.job import JobId, NewJob
from duetime.model.parking import CodeSchedule
from duetime.model.schedule import SUPERSEDED, Change, Firing, StoredSchedule
from duetime.model.texts import clean_text
from duetime.model.worker import WorkerId
from duetime.stores.base import DueSchedules
from duetime.stores.sql import rows, scripts
from duetime.stores.sql.driver import Query, Row, Script, TakenBack
from duetime.stores.sql.loader import Statements
from duetime.stores.sql.scripts.jobs import insertion

if TYPE_CHECKING:
    from duetime.model.spans import Cut
    from duetime.model.stored import StoredJob


class Written(NamedTuple):
    """Which schedules were written, and which workers hold jobs of theirs that must not start or must end."""

    names: frozenset[str]
    workers: frozenset[WorkerId]


def write(sql: Statements, changes: Sequence[Change], *, whole: bool = False) -> Script[Written]:
    """Add and change schedules that are as they were read, with all that belongs to each; `whole`: all or none.

    What had been written before is known by its entry, and counts as written.
    """
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
    refused = [
        change.entry for change in changes if change.entry is not None and change.after.name not in names
    ]
    repeated = yield from _noted(sql, refused)
    names |= {entry.target for entry in repeated}
    if whole and len(names) < len(changes):
        raise TakenBack
    return Written(names, workers)


def note(sql: Statements, entries: Sequence[AuditEntry]) -> Script[None]:
    """Keep who did what."""
    if entries:
        yield Query(sql.add_entries, {"rows": rows.entries(entries)})


def due_schedules(sql: Statements, *, ahead: Micros, limit: int) -> Script[DueSchedules]:
    """List the schedules to fire, and tell when the next one comes up."""
    due = yield Query(sql.due_schedules, {"ahead": ahead, "limit": limit + 1})
    found = yield Query(sql.next_schedule, {"ahead": ahead})
    now, next_at, resuming, resumes_at = found[0]
    # Those that go on come first. One more of each than asked for tells whether others have to wait.
    going_on = (yield Query(sql.resuming_schedules, {"limit": limit + 1})) if resuming else []
    schedules = [rows.schedule(row) for row in (*going_on, *due)]
    return DueSchedules(now, schedules, rows.moment(next_at), rows.moment(resumes_at)).up_to(limit)


def fire(sql: Statements, firings: Sequence[Firing]) -> Script[Written]:
    """Move schedules on by compare-and-set and store the jobs of those that moved."""
    moves = [
        (f.name, f.rev, f.expected, f.fired_through, f.next_at, f.made, f.pause, int(f.resumes), ITSELF)
        for f in firings
    ]
    moved = yield Query(sql.fire, {"rows": rows.batch_for(sql.fire, moves)})
    applied = _names(moved)
    fired = [firing for firing in firings if firing.name in applied]
    workers = frozenset[WorkerId]()
    if ending := [firing.name for firing in fired if firing.cancels]:
        workers = yield from _supersede(sql, ending)
    jobs = [job for firing in fired for job in firing.jobs]
    if jobs:
        yield insertion(sql, jobs)
    yield from note(sql, [entry for firing in fired for entry in firing.entries()])
    return Written(applied, workers)


def delete(sql: Statements, name: str, entry: AuditEntry) -> Script[Written]:
    """Forget a schedule and withdraw what it has planted."""
    if (yield from _noted(sql, [entry])):
        # It was this very deletion, of which the answer was lost; what is there now was added since.
        return Written(frozenset([name]), frozenset())
    found = yield Query(sql.delete_schedule, {"name": clean_text(name)})
    if not found:
        return Written(frozenset(), frozenset())
    values = {"rows": rows.batch([(name, "schedule deleted", None, 1)])}
    yield Query(sql.lock_planted, values)
    yield Query(sql.withdraw, values)
    flagged = yield Query(sql.withdraw_claimed, values)
    yield from note(sql, [entry])
    return Written(_names(found), _holders(flagged))


def schedules(sql: Statements) -> Script[list[StoredSchedule]]:
    """Read all schedules."""
    found = yield Query(sql.schedules, {})
    return [rows.schedule(row) for row in found]


def code_schedules(sql: Statements) -> Script[list[CodeSchedule]]:
    """Read what code has declared."""
    found = yield Query(sql.code_schedules, {})
    return [CodeSchedule(name, task, bool(parked)) for name, task, parked in found]


def get_schedules(sql: Statements, names: Iterable[str]) -> Script[list[StoredSchedule]]:
    """Read schedules by name."""
    found = yield Query(sql.get_schedules, {"rows": rows.batch((name,) for name in names)})
    return [rows.schedule(row) for row in found]


def occurrences(
    sql: Statements, name: str, *, since: Instant, until: Instant, limit: int
) -> Script[list[StoredJob]]:
    """Read the records of a schedule for a stretch of time."""
    values = {"schedule": clean_text(name), "since": since, "until": until, "limit": limit}
    # Here, since most workers never need it.
    from duetime.stores.sql import records

    found = yield Query(sql.occurrences, values)
    return [records.job(row) for row in found]


def past_occurrences(
    sql: Statements, name: str, *, until: Instant, limit: int, made: bool
) -> Script[list[StoredJob]]:
    """Read the records of a schedule up to an instant, latest first."""
    values = {"schedule": clean_text(name), "until": until, "limit": limit, "made": int(made)}
    # Here, since most workers never need it.
    from duetime.stores.sql import records

    found = yield Query(sql.past_occurrences, values)
    return [records.job(row) for row in found]


def backfill(
    sql: Statements, jobs: Sequence[NewJob], cuts: Sequence[Cut], entry: AuditEntry
) -> Script[list[JobId] | None]:
    """Store jobs for occurrences that have none; the records that are in their way give way, unless they have changed."""
    if cuts:
        found = yield Query(sql.lock_spans, {"rows": rows.batch((cut.id,) for cut in cuts)})
        was = {(cut.id, cut.was.first, cut.was.last, cut.was.count) for cut in cuts}
        if was != set(map(tuple, found)):
            # Either another was faster, or it was this very call, of which the answer was lost.
            return (yield from _stored(sql, jobs)) or None
        yield Query(sql.cut_spans, {"rows": rows.batch(map(_cut, cuts))})
    yield insertion(sql, [*(record for cut in cuts for record in cut.others), *jobs])
    ids = yield from _stored(sql, jobs)
    if ids:
        yield from note(sql, [entry])
    return ids


def entries(sql: Statements, target: str, *, limit: int, before: str | None) -> Script[list[StoredEntry]]:
    """Read what was done to something, newest first."""
    values = {"target": clean_text(target), "limit": limit, "before": before}
    found = yield Query(sql.entries if before is None else sql.entries_before, values)
    return [rows.entry(row) for row in found]


def _withdraw(sql: Statements, changes: Sequence[Change]) -> Script[frozenset[WorkerId]]:
    """Take back planted jobs; return the workers that hold some of them.

    The schedule is put back to before them, or a change a moment before an occurrence would swallow it.
    """
    if not changes:
        return frozenset()
    held = rows.batch(_planted(change) for change in changes if change.held)
    some_held = any(change.held for change in changes)
    if some_held:
        yield Query(sql.lock_planted, {"rows": held})
    withdrawn: dict[str, list[Instant]] = {}
    for name, freed, kept in (yield Query(sql.withdraw, {"rows": rows.batch(map(_planted, changes))})):
        if kept is None:
            withdrawn.setdefault(name, []).append(freed)
    if back := [row for c in changes if (row := _rewound(c, withdrawn.get(c.after.name, []))) is not None]:
        yield Query(sql.rewind, {"rows": rows.batch_for(sql.rewind, back)})
    if not some_held:
        return frozenset()
    return _holders((yield Query(sql.withdraw_claimed, {"rows": held})))


def _planted(change: Change) -> tuple[object, ...]:
    return change.after.name, change.withdraw, change.only, int(change.drawn)


def _rewound(change: Change, occurrences: Sequence[Instant]) -> tuple[object, ...] | None:
    """Return where a schedule goes on from, and how many jobs it has not made after all."""
    if not occurrences:
        return None
    first = min(occurrences)
    # What is parked has no next time.
    next_at = first if change.after.parked_at is None else None
    place = (first - 1, next_at) if change.again else (None, None)
    return change.after.name, *place, len(occurrences)


def _cut(cut: Cut) -> tuple[object, ...]:
    if cut.left is None:
        return cut.id, cut.was.first, None, cut.was.count
    return cut.id, cut.left.first, cut.left.last, cut.left.count


def _stored(sql: Statements, jobs: Sequence[NewJob]) -> Script[list[JobId]]:
    """Return the ids of the jobs that stand for their occurrences."""
    wanted = rows.batch((job.schedule, job.occurrence) for job in jobs)
    found = yield Query(sql.occurrence_ids, {"rows": wanted})
    there = {row[2] for row in found}
    return [job.id for job in jobs if job.id in there]


def _supersede(sql: Statements, names: Sequence[str]) -> Script[frozenset[WorkerId]]:
    found = yield Query(sql.fired_jobs, {"rows": rows.batch((name,) for name in names)})
    ended = yield from scripts.control.cancel(sql, [row[0] for row in found], reason=SUPERSEDED)
    return ended.workers


def _noted(sql: Statements, entries: Sequence[AuditEntry]) -> Script[list[AuditEntry]]:
    """Return those that are there already."""
    if not entries:
        return []
    found = yield Query(sql.noted, {"rows": rows.batch((entry.id,) for entry in entries)})
    there = {row[0] for row in found}
    return [entry for entry in entries if entry.id in there]


def _holders(found: Sequence[Row]) -> frozenset[WorkerId]:
    return frozenset(row[0] for row in found if row[0] is not None)


def _names(found: Sequence[Row]) -> frozenset[str]:
    return frozenset(row[0] for row in found)
