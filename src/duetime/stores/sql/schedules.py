"""Schedules: added, changed, fired and read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Final

from duetime.model.job import JobId, NewJob
from duetime.model.schedule.actions import CodeSchedule
from duetime.model.schedule.occurrences import SpanCut
from duetime.model.schedule.record import SUPERSEDED, Firing, ScheduleUpdate, StoredSchedule
from duetime.model.schedule.runs import RUN_ENDS, ScheduleRuns, StoredRun, runs_by_schedule
from duetime.model.states import State
from duetime.model.stored.audit import ITSELF, AuditEntry, StoredAuditEntry
from duetime.model.stored.jobs import StoredJob
from duetime.model.text import clean_text
from duetime.model.time import Instant, Micros
from duetime.model.worker import WorkerId
from duetime.stores.base import DueSchedules, Hint
from duetime.stores.base.jobs import job_hints
from duetime.stores.sql.driver import Query, Row, Script, ScriptUndone
from duetime.stores.sql.enqueue import insertion, note
from duetime.stores.sql.job_control import cancel, worker_hints
from duetime.stores.sql.records import job_record
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import (
    encode_batch,
    encode_batch_for,
    encode_new_schedules,
    encode_schedule_changes,
    read_entry,
    read_moment,
    read_schedule,
)
from duetime.stores.sql.verbs import HintingScript, SqlSubject, read, write

_move = attrgetter("name", "rev", "expected", "fired_through", "next_at", "made", "pause")
_DUE_AT_ONCE: Final = 500
"""About how many are read, which gives a read its time."""


def _rows(changes: Sequence[ScheduleUpdate] | Sequence[Firing]) -> int:
    return sum(1 + len(change.jobs) for change in changes)


_ALL: Final = 1 << 31
"""More than there are."""


class SqlSchedules(SqlSubject):
    """Schedules."""

    async def write_schedules(
        self, changes: Sequence[ScheduleUpdate], *, whole: bool = False
    ) -> frozenset[str]:
        """Write each change whose schedule is as it was read, jobs and entries included; return their names."""
        try:
            return await self._write_schedules(changes, whole=whole)
        except ScriptUndone:
            return frozenset()

    @write(rows=_rows)
    def _write_schedules(
        self, changes: Sequence[ScheduleUpdate], *, whole: bool
    ) -> HintingScript[frozenset[str]]:
        """Add and change schedules that are as they were read, with all that belongs to each; `whole`: all or none.

        What had been written before is known by its entry, and counts as written.
        """
        names = frozenset[str]()
        if added := [change.after for change in changes if change.before is None]:
            names |= _names((yield Query(self._sql.add_schedules, {"rows": encode_new_schedules(added)})))
        if edited := [change for change in changes if change.before is not None]:
            rows = encode_schedule_changes(edited)
            names |= _names((yield Query(self._sql.change_schedules, {"rows": rows})))
        written = [change for change in changes if change.after.name in names]
        workers = yield from _withdraw(self._sql, [one for one in written if one.withdraw is not None])
        if jobs := [job for change in written for job in change.jobs]:
            yield insertion(self._sql, jobs)
        yield from note(self._sql, [change.entry for change in written])
        refused = [one.entry for one in changes if one.entry is not None and one.after.name not in names]
        names |= {entry.target for entry in (yield from _noted(self._sql, refused))}
        if whole and len(names) < len(changes):
            raise ScriptUndone
        yield from _hints(names, workers)
        yield from job_hints([job for change in changes if change.after.name in names for job in change.jobs])
        return names

    @read(rows=_DUE_AT_ONCE)
    def due_schedules(self, *, ahead: Micros, limit: int) -> Script[DueSchedules]:
        """Return what is to be fired or to go on now, and when to look again."""
        due = yield Query(self._sql.due_schedules, {"ahead": ahead, "limit": limit + 1})
        [(now, next_at, resuming, resumes_at)] = yield Query(self._sql.next_schedule, {"ahead": ahead})
        # Those that go on come first. One more of each than asked for tells whether others have to wait.
        going_on = (yield Query(self._sql.resuming_schedules, {"limit": limit + 1})) if resuming else []
        schedules = [read_schedule(row) for row in (*going_on, *due)]
        return DueSchedules(now, schedules, read_moment(next_at), read_moment(resumes_at)).up_to(limit)

    @write(rows=_rows)
    def fire(self, firings: Sequence[Firing]) -> HintingScript[frozenset[str]]:
        """Move schedules on by compare-and-set and store the jobs of those that moved; return their names."""
        moves = [(*_move(firing), int(firing.resumes), ITSELF) for firing in firings]
        applied = _names((yield Query(self._sql.fire, {"rows": encode_batch_for(self._sql.fire, moves)})))
        fired = [firing for firing in firings if firing.name in applied]
        if ending := [(firing.name,) for firing in fired if firing.cancels]:
            found = yield Query(self._sql.fired_jobs, {"rows": encode_batch(ending)})
            yield from cancel(self._sql, [row[0] for row in found], reason=SUPERSEDED)
        if jobs := [job for firing in fired for job in firing.jobs]:
            yield insertion(self._sql, jobs)
        yield from note(self._sql, [entry for firing in fired for entry in firing.entries()])
        yield from job_hints(jobs)
        return applied

    @write()
    def delete_schedule(self, name: str, entry: AuditEntry) -> HintingScript[bool]:
        """Remove a schedule and withdraw its planted, unstarted jobs."""
        if (yield from _noted(self._sql, [entry])):
            # It was this very deletion, of which the answer was lost; what is there now was added since.
            yield Hint("schedules")
            return True
        found = yield Query(self._sql.delete_schedule, {"name": clean_text(name)})
        if not found:
            return False
        values = {"rows": encode_batch([(name, "schedule deleted", None, 1)])}
        yield Query(self._sql.lock_planted, values)
        yield Query(self._sql.withdraw, values)
        flagged = yield Query(self._sql.withdraw_claimed, values)
        yield from note(self._sql, [entry])
        yield from _hints(_names(found), _holders(flagged))
        return True

    @write(rows=None)
    def backfill(
        self, jobs: Sequence[NewJob], entry: AuditEntry, *, cuts: Sequence[SpanCut] = ()
    ) -> HintingScript[list[JobId] | None]:
        """Store jobs for occurrences that have none; records in their way give way, unless they have changed."""
        if not jobs:
            return []
        if cuts:
            found = yield Query(self._sql.lock_spans, {"rows": encode_batch((cut.id,) for cut in cuts)})
            was = {(cut.id, cut.was.first, cut.was.last, cut.was.count) for cut in cuts}
            if was != set(map(tuple, found)):
                # Either another was faster, or it was this very call, of which the answer was lost.
                return (yield from _stored(self._sql, jobs)) or None
            yield Query(self._sql.cut_spans, {"rows": encode_batch(map(_cut, cuts))})
        yield insertion(self._sql, [*(record for cut in cuts for record in cut.others), *jobs])
        ids = yield from _stored(self._sql, jobs)
        if ids:
            yield from note(self._sql, [entry])
        yield from job_hints([job for job in jobs if job.id in frozenset(ids)])
        return ids

    @read(rows=None)
    def schedules(
        self, *, after: str = "", limit: int | None = None, queues: Collection[str] | None = None
    ) -> Script[list[StoredSchedule]]:
        """Return schedules by name."""
        query = Query(self._sql.schedules, {})
        if after or limit is not None or queues is not None:
            listed = None if queues is None else encode_batch((queue,) for queue in queues)
            most = _ALL if limit is None else limit
            query = Query(self._sql.schedules_page, {"after": after, "queues": listed, "limit": most})
        return [read_schedule(row) for row in (yield query)]

    @read(rows=None)
    def code_schedules(self) -> Script[list[CodeSchedule]]:
        """Return the schedules that code has declared, in brief."""
        found = yield Query(self._sql.code_schedules, {})
        return [CodeSchedule(name, task, bool(parked)) for name, task, parked in found]

    @read(rows=len)
    def get_schedules(self, names: Sequence[str]) -> Script[list[StoredSchedule]]:
        """Return the schedules that exist, by name."""
        found = yield Query(self._sql.get_schedules, {"rows": encode_batch((name,) for name in names)})
        return [read_schedule(row) for row in found]

    @read(rows=None)
    def occurrences(
        self, name: str, *, since: Instant, until: Instant, limit: int
    ) -> Script[list[StoredJob]]:
        """Return the records of a schedule for a stretch of time, by occurrence."""
        values = {"schedule": clean_text(name), "since": since, "until": until, "limit": limit}
        return [job_record(row) for row in (yield Query(self._sql.occurrences, values))]

    @read(rows=None)
    def past_occurrences(
        self, name: str, *, until: Instant, limit: int, made: bool = False
    ) -> Script[list[StoredJob]]:
        """Return the records of a schedule up to an instant, latest first."""
        values = {"schedule": clean_text(name), "until": until, "limit": limit, "made": int(made)}
        return [job_record(row) for row in (yield Query(self._sql.past_occurrences, values))]

    @read(rows=None)
    def runs(self, names: Sequence[str], *, most: int) -> Script[dict[str, ScheduleRuns]]:
        """Return how schedules fare, by name."""
        asked = encode_batch((name, state) for name in names for state in RUN_ENDS)
        counts: dict[tuple[str, State], int] = {}
        ids: list[tuple[JobId]] = []
        for name, state, count, *latest in (
            yield Query(self._sql.count_runs, {"rows": asked, "most": most + 1})
        ):
            counts[name, State(state)] = count
            ids += [(job_id,) for job_id in latest if job_id is not None]
        found = (yield Query(self._sql.latest_runs, {"rows": encode_batch(ids)})) if ids else []
        return runs_by_schedule(counts, [StoredRun.from_row(row, now=now) for now, *row in found], most=most)

    @read(rows=None)
    def entries(
        self, target: str | None, *, limit: int, before: str | None = None
    ) -> Script[list[StoredAuditEntry]]:
        """Return what was done to something, or at all, newest first."""
        if target is None:
            values: dict[str, object] = {"limit": limit, "before": before}
            found = yield Query(
                self._sql.all_entries if before is None else self._sql.all_entries_before, values
            )
        else:
            values = {"target": clean_text(target), "limit": limit, "before": before}
            found = yield Query(self._sql.entries if before is None else self._sql.entries_before, values)
        return [read_entry(row) for row in found]


def _hints(names: frozenset[str], workers: Iterable[WorkerId]) -> HintingScript[None]:
    """Hint that schedules were written, and the workers that hold jobs of theirs."""
    if names:
        yield Hint("schedules")
    yield from worker_hints(workers)


def _withdraw(sql: Statements, changes: Sequence[ScheduleUpdate]) -> Script[frozenset[WorkerId]]:
    """Take back planted jobs; return the workers that hold some of them.

    The schedule is put back to before them, or a change a moment before an occurrence would swallow it.
    """
    if not changes:
        return frozenset()
    held = [_planted(change) for change in changes if change.held]
    if held:
        yield Query(sql.lock_planted, {"rows": encode_batch(held)})
    withdrawn: dict[str, list[Instant]] = {}
    for name, freed, kept in (yield Query(sql.withdraw, {"rows": encode_batch(map(_planted, changes))})):
        if kept is None:
            withdrawn.setdefault(name, []).append(freed)
    if back := [row for c in changes if (row := _rewound(c, withdrawn.get(c.after.name, []))) is not None]:
        yield Query(sql.rewind, {"rows": encode_batch_for(sql.rewind, back)})
    return _holders((yield Query(sql.withdraw_claimed, {"rows": encode_batch(held)})) if held else [])


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
    left = cut.left or cut.was
    return cut.id, left.first, left.last if cut.left else None, left.count


def _stored(sql: Statements, jobs: Sequence[NewJob]) -> Script[list[JobId]]:
    """Return the ids of the jobs that stand for their occurrences."""
    wanted = encode_batch((job.schedule, job.occurrence) for job in jobs)
    there = {row[2] for row in (yield Query(sql.occurrence_ids, {"rows": wanted}))}
    return [job.id for job in jobs if job.id in there]


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
