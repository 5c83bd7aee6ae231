"""Schedules: added, changed, fired and read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from duetime.model.audit import ITSELF, AuditEntry, StoredAuditEntry
from duetime.model.job import JobId, NewJob
from duetime.model.schedule.actions import CodeSchedule
from duetime.model.schedule.record import SUPERSEDED, Firing, ScheduleUpdate, StoredSchedule
from duetime.model.text import clean_text
from duetime.model.time import Instant, Micros
from duetime.model.worker import WorkerId
from duetime.stores.base import DueSchedules, Hint
from duetime.stores.sql.driver import Query, Row, Script, ScriptUndone
from duetime.stores.sql.enqueue import SqlEnqueuing, insertion
from duetime.stores.sql.job_control import SqlJobControl, cancel
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import (
    encode_batch,
    encode_batch_for,
    encode_entries,
    encode_new_schedules,
    encode_schedule_changes,
    read_entry,
    read_moment,
    read_schedule,
)

if TYPE_CHECKING:
    from duetime.model.schedule.backfill import SpanCut
    from duetime.model.stored import StoredJob


class WrittenSchedules(NamedTuple):
    """Which schedules were written, and which workers hold jobs of theirs that must not start or must end."""

    names: frozenset[str]
    workers: frozenset[WorkerId]


def write(
    sql: Statements, changes: Sequence[ScheduleUpdate], *, whole: bool = False
) -> Script[WrittenSchedules]:
    """Add and change schedules that are as they were read, with all that belongs to each; `whole`: all or none.

    What had been written before is known by its entry, and counts as written.
    """
    added = [change for change in changes if change.before is None]
    edited = [change for change in changes if change.before is not None]
    names = frozenset[str]()
    if added:
        found = yield Query(sql.add_schedules, {"rows": encode_new_schedules(c.after for c in added)})
        names |= _names(found)
    if edited:
        found = yield Query(sql.change_schedules, {"rows": encode_schedule_changes(edited)})
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
        raise ScriptUndone
    return WrittenSchedules(names, workers)


def note(sql: Statements, entries: Sequence[AuditEntry]) -> Script[None]:
    """Keep who did what."""
    if entries:
        yield Query(sql.add_entries, {"rows": encode_entries(entries)})


def due_schedules(sql: Statements, *, ahead: Micros, limit: int) -> Script[DueSchedules]:
    """List the schedules to fire, and tell when the next one comes up."""
    due = yield Query(sql.due_schedules, {"ahead": ahead, "limit": limit + 1})
    found = yield Query(sql.next_schedule, {"ahead": ahead})
    now, next_at, resuming, resumes_at = found[0]
    # Those that go on come first. One more of each than asked for tells whether others have to wait.
    going_on = (yield Query(sql.resuming_schedules, {"limit": limit + 1})) if resuming else []
    schedules = [read_schedule(row) for row in (*going_on, *due)]
    return DueSchedules(now, schedules, read_moment(next_at), read_moment(resumes_at)).up_to(limit)


def fire(sql: Statements, firings: Sequence[Firing]) -> Script[WrittenSchedules]:
    """Move schedules on by compare-and-set and store the jobs of those that moved."""
    moves = [
        (f.name, f.rev, f.expected, f.fired_through, f.next_at, f.made, f.pause, int(f.resumes), ITSELF)
        for f in firings
    ]
    moved = yield Query(sql.fire, {"rows": encode_batch_for(sql.fire, moves)})
    applied = _names(moved)
    fired = [firing for firing in firings if firing.name in applied]
    workers = frozenset[WorkerId]()
    if ending := [firing.name for firing in fired if firing.cancels]:
        workers = yield from _supersede(sql, ending)
    jobs = [job for firing in fired for job in firing.jobs]
    if jobs:
        yield insertion(sql, jobs)
    yield from note(sql, [entry for firing in fired for entry in firing.entries()])
    return WrittenSchedules(applied, workers)


def delete(sql: Statements, name: str, entry: AuditEntry) -> Script[WrittenSchedules]:
    """Forget a schedule and withdraw what it has planted."""
    if (yield from _noted(sql, [entry])):
        # It was this very deletion, of which the answer was lost; what is there now was added since.
        return WrittenSchedules(frozenset([name]), frozenset())
    found = yield Query(sql.delete_schedule, {"name": clean_text(name)})
    if not found:
        return WrittenSchedules(frozenset(), frozenset())
    values = {"rows": encode_batch([(name, "schedule deleted", None, 1)])}
    yield Query(sql.lock_planted, values)
    yield Query(sql.withdraw, values)
    flagged = yield Query(sql.withdraw_claimed, values)
    yield from note(sql, [entry])
    return WrittenSchedules(_names(found), _holders(flagged))


def schedules(sql: Statements) -> Script[list[StoredSchedule]]:
    """Read all schedules."""
    found = yield Query(sql.schedules, {})
    return [read_schedule(row) for row in found]


def code_schedules(sql: Statements) -> Script[list[CodeSchedule]]:
    """Read what code has declared."""
    found = yield Query(sql.code_schedules, {})
    return [CodeSchedule(name, task, bool(parked)) for name, task, parked in found]


def get_schedules(sql: Statements, names: Iterable[str]) -> Script[list[StoredSchedule]]:
    """Read schedules by name."""
    found = yield Query(sql.get_schedules, {"rows": encode_batch((name,) for name in names)})
    return [read_schedule(row) for row in found]


def occurrences(
    sql: Statements, name: str, *, since: Instant, until: Instant, limit: int
) -> Script[list[StoredJob]]:
    """Read the records of a schedule for a stretch of time."""
    values = {"schedule": clean_text(name), "since": since, "until": until, "limit": limit}
    # Here, since most workers never need it.
    from duetime.stores.sql import records

    found = yield Query(sql.occurrences, values)
    return [records.job_record(row) for row in found]


def past_occurrences(
    sql: Statements, name: str, *, until: Instant, limit: int, made: bool
) -> Script[list[StoredJob]]:
    """Read the records of a schedule up to an instant, latest first."""
    values = {"schedule": clean_text(name), "until": until, "limit": limit, "made": int(made)}
    # Here, since most workers never need it.
    from duetime.stores.sql import records

    found = yield Query(sql.past_occurrences, values)
    return [records.job_record(row) for row in found]


def backfill(
    sql: Statements, jobs: Sequence[NewJob], cuts: Sequence[SpanCut], entry: AuditEntry
) -> Script[list[JobId] | None]:
    """Store jobs for occurrences that have none; the records that are in their way give way, unless they have changed."""
    if cuts:
        found = yield Query(sql.lock_spans, {"rows": encode_batch((cut.id,) for cut in cuts)})
        was = {(cut.id, cut.was.first, cut.was.last, cut.was.count) for cut in cuts}
        if was != set(map(tuple, found)):
            # Either another was faster, or it was this very call, of which the answer was lost.
            return (yield from _stored(sql, jobs)) or None
        yield Query(sql.cut_spans, {"rows": encode_batch(map(_cut, cuts))})
    yield insertion(sql, [*(record for cut in cuts for record in cut.others), *jobs])
    ids = yield from _stored(sql, jobs)
    if ids:
        yield from note(sql, [entry])
    return ids


def entries(
    sql: Statements, target: str, *, limit: int, before: str | None
) -> Script[list[StoredAuditEntry]]:
    """Read what was done to something, newest first."""
    values = {"target": clean_text(target), "limit": limit, "before": before}
    found = yield Query(sql.entries if before is None else sql.entries_before, values)
    return [read_entry(row) for row in found]


def _withdraw(sql: Statements, changes: Sequence[ScheduleUpdate]) -> Script[frozenset[WorkerId]]:
    """Take back planted jobs; return the workers that hold some of them.

    The schedule is put back to before them, or a change a moment before an occurrence would swallow it.
    """
    if not changes:
        return frozenset()
    held = encode_batch(_planted(change) for change in changes if change.held)
    some_held = any(change.held for change in changes)
    if some_held:
        yield Query(sql.lock_planted, {"rows": held})
    withdrawn: dict[str, list[Instant]] = {}
    for name, freed, kept in (yield Query(sql.withdraw, {"rows": encode_batch(map(_planted, changes))})):
        if kept is None:
            withdrawn.setdefault(name, []).append(freed)
    if back := [row for c in changes if (row := _rewound(c, withdrawn.get(c.after.name, []))) is not None]:
        yield Query(sql.rewind, {"rows": encode_batch_for(sql.rewind, back)})
    if not some_held:
        return frozenset()
    return _holders((yield Query(sql.withdraw_claimed, {"rows": held})))


def _planted(change: ScheduleUpdate) -> tuple[object, ...]:
    return change.after.name, change.withdraw, change.only, int(change.drawn)


def _rewound(change: ScheduleUpdate, occurrences: Sequence[Instant]) -> tuple[object, ...] | None:
    """Return where a schedule goes on from, and how many jobs it has not made after all."""
    if not occurrences:
        return None
    first = min(occurrences)
    # What is parked has no next time.
    next_at = first if change.after.parked_at is None else None
    place = (first - 1, next_at) if change.again else (None, None)
    return change.after.name, *place, len(occurrences)


def _cut(cut: SpanCut) -> tuple[object, ...]:
    if cut.left is None:
        return cut.id, cut.was.first, None, cut.was.count
    return cut.id, cut.left.first, cut.left.last, cut.left.count


def _stored(sql: Statements, jobs: Sequence[NewJob]) -> Script[list[JobId]]:
    """Return the ids of the jobs that stand for their occurrences."""
    wanted = encode_batch((job.schedule, job.occurrence) for job in jobs)
    found = yield Query(sql.occurrence_ids, {"rows": wanted})
    there = {row[2] for row in found}
    return [job.id for job in jobs if job.id in there]


def _supersede(sql: Statements, names: Sequence[str]) -> Script[frozenset[WorkerId]]:
    found = yield Query(sql.fired_jobs, {"rows": encode_batch((name,) for name in names)})
    ended = yield from cancel(sql, [row[0] for row in found], reason=SUPERSEDED)
    return ended.workers


def _noted(sql: Statements, entries: Sequence[AuditEntry]) -> Script[list[AuditEntry]]:
    """Return those that are there already."""
    if not entries:
        return []
    found = yield Query(sql.noted, {"rows": encode_batch((entry.id,) for entry in entries)})
    there = {row[0] for row in found}
    return [entry for entry in entries if entry.id in there]


def _holders(found: Sequence[Row]) -> frozenset[WorkerId]:
    return frozenset(row[0] for row in found if row[0] is not None)


def _names(found: Sequence[Row]) -> frozenset[str]:
    return frozenset(row[0] for row in found)


class SqlSchedules(SqlJobControl):
    """A part of `SqlStore`, which has the driver and the statements."""

    _enqueuing: SqlEnqueuing

    async def write_schedules(
        self, changes: Sequence[ScheduleUpdate], *, whole: bool = False
    ) -> frozenset[str]:
        """Write each change whose schedule is as it was read, jobs and entries included; return their names."""
        if not changes:
            return frozenset()
        try:
            written = await self._driver.write(
                lambda: write(self._sql, changes, whole=whole),
                rows=sum(1 + len(change.jobs) for change in changes),
            )
        except ScriptUndone:
            return frozenset()
        self._hint_schedules(written)
        self._enqueuing.hint(job for c in changes if c.after.name in written.names for job in c.jobs)
        return written.names

    async def due_schedules(self, *, ahead: Micros, limit: int) -> DueSchedules:
        """Return what is to be fired or to go on now, and when to look again."""
        return await self._driver.read(lambda: due_schedules(self._sql, ahead=ahead, limit=limit), rows=limit)

    async def fire(self, firings: Sequence[Firing]) -> frozenset[str]:
        """Apply each firing whose compare-and-set holds, jobs included."""
        if not firings:
            return frozenset()
        fired = await self._driver.write(
            lambda: fire(self._sql, firings),
            rows=sum(1 + len(firing.jobs) for firing in firings),
        )
        self._enqueuing.hint(job for firing in firings if firing.name in fired.names for job in firing.jobs)
        self._hint_workers(fired.workers)
        return fired.names

    async def delete_schedule(self, name: str, entry: AuditEntry) -> bool:
        """Remove a schedule and withdraw its planted, unstarted jobs."""
        written = await self._driver.write(lambda: delete(self._sql, name, entry))
        self._hint_schedules(written)
        return bool(written.names)

    async def backfill(
        self, jobs: Sequence[NewJob], entry: AuditEntry, *, cuts: Sequence[SpanCut] = ()
    ) -> list[JobId] | None:
        """Store jobs for occurrences that have none, and return their ids."""
        if not jobs:
            return []
        ids = await self._driver.write(lambda: backfill(self._sql, jobs, cuts, entry), rows=None)
        stored = frozenset(ids or ())
        self._enqueuing.hint(job for job in jobs if job.id in stored)
        return ids

    async def schedules(self) -> list[StoredSchedule]:
        """Return all schedules by name."""
        return await self._driver.read(lambda: schedules(self._sql), rows=None)

    async def code_schedules(self) -> list[CodeSchedule]:
        """Return the schedules that code has declared, in brief."""
        return await self._driver.read(lambda: code_schedules(self._sql), rows=None)

    async def get_schedules(self, names: Sequence[str]) -> list[StoredSchedule]:
        """Return the schedules that exist, by name."""
        return await self._driver.read(lambda: get_schedules(self._sql, names), rows=len(names))

    async def occurrences(self, name: str, *, since: Instant, until: Instant, limit: int) -> list[StoredJob]:
        """Return the records of a schedule for a stretch of time, by occurrence."""
        return await self._driver.read(
            lambda: occurrences(self._sql, name, since=since, until=until, limit=limit),
            rows=None,
        )

    async def past_occurrences(
        self, name: str, *, until: Instant, limit: int, made: bool = False
    ) -> list[StoredJob]:
        """Return the records of a schedule up to an instant, latest first."""
        return await self._driver.read(
            lambda: past_occurrences(self._sql, name, until=until, limit=limit, made=made),
            rows=None,
        )

    async def entries(self, target: str, *, limit: int, before: str | None = None) -> list[StoredAuditEntry]:
        """Return what was done to something, newest first."""
        return await self._driver.read(
            lambda: entries(self._sql, target, limit=limit, before=before), rows=None
        )

    def _hint_schedules(self, written: WrittenSchedules) -> None:
        if written.names:
            self._driver.hint(Hint("schedules"))
        self._hint_workers(written.workers)
