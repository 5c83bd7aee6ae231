"""What people read: the records of jobs, their attempts and logs, and of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, TypeVar, cast

import msgspec

from duetime.model.ids import first_id_of
from duetime.model.job import JobId, join_tags
from duetime.model.reports import LogPart
from duetime.model.retention import as_of
from duetime.model.states import State
from duetime.model.stored.jobs import (
    StoredAttempt,
    StoredJob,
    StoredWorker,
    row_problem,
    unreadable_row,
    with_blanks,
)
from duetime.model.time import Instant
from duetime.model.worker import Command, WorkerStats
from duetime.stores.base import BEHIND_ALL_IDS, JobFilter, JobPage
from duetime.stores.base.jobs import read_progress
from duetime.stores.sql.driver import Query, Row, Script, Statement
from duetime.stores.sql.statements.rows import encode_batch
from duetime.stores.sql.verbs import SqlSubject, read

T = TypeVar("T")

_JOB_FIELDS: Final = tuple(StoredJob.__dataclass_fields__)
_ATTEMPT_FIELDS: Final = tuple(StoredAttempt.__dataclass_fields__)
_LOG_FIELDS: Final = ("job_id", "fence", "attempt", "line", "text")
_WORKER_FIELDS: Final = tuple(name for name in StoredWorker.__dataclass_fields__ if name != "stats")
_STATS_FIELDS: Final = tuple(WorkerStats.__dataclass_fields__)
_COMMAND_COLUMNS: Final = [
    "id",
    "worker",
    "kind",
    "body",
    "created_at",
    "taken_at",
    "done_at",
    "outcome",
    "dropped",
]
_NEWEST: Final = 2_000
"""How many jobs are looked at before an index."""
_NEWEST_FOR_EACH: Final = 10
"""How many for each that is asked for, where few are to be looked at."""


class SqlRecords(SqlSubject):
    """For clients, the command line and dashboards."""

    @read()
    def now(self) -> Script[Instant]:
        """Return the store's clock."""
        [(now,)] = yield Query(self._sql.clock, {})
        return cast("Instant", now)

    @read(rows=len)
    def get(self, ids: Sequence[JobId]) -> Script[list[StoredJob]]:
        """Return the jobs that exist, in the order asked."""
        found = yield Query(self._sql.get, {"rows": encode_batch((job_id,) for job_id in ids)})
        jobs = {job.id: job for job in map(job_record, found)}
        return [jobs[job_id] for job_id in ids if job_id in jobs]

    @read(rows=None)
    def find(self, where: JobFilter) -> Script[JobPage]:
        """Return one page of jobs, newest first.

        What is rare among many may have an index, but one that is not in this order. The newest jobs are looked at
        first: what is not rare fills the page from there.
        """
        sql, look_at = self._sql, where.look_at
        values: dict[str, object] = {
            **asdict(where),
            "states": ",".join(sorted(where.states)) or None,
            "tag": where.tag and join_tags((where.tag,)),
            "from_id": "" if where.since is None else first_id_of(where.since),
            "before": where.before or BEHIND_ALL_IDS,
        }
        if where.wants_running:
            return JobPage(map(job_record, (yield Query(sql.find_running, values))))
        narrow = self._narrow(where)
        if narrow is not None or look_at is not None:
            newest = _NEWEST if look_at is None else min(look_at, _NEWEST_FOR_EACH * where.limit)
            found = yield Query(sql.find_newest, {**values, "newest": newest})
            if len(found) >= where.limit:
                return JobPage(map(job_record, found))
        if narrow is not None:
            whole, count = narrow
            # What is not rare is found along the ids.
            if look_at is None or (yield Query(count, values))[0][0] < look_at:
                return JobPage(map(job_record, (yield Query(whole, values))))
        along, reach = sql.find, sql.reach
        if where.wants_unsuccessful:
            along, reach = sql.find_unsuccessful, sql.reach_unsuccessful
        looked_to: JobId | None = None
        if look_at is not None:
            ((last, looked_at),) = yield Query(reach, values)
            if looked_at >= look_at:
                values["from_id"] = looked_to = last
        found = yield Query(along, values)
        return JobPage(map(job_record, found), looked_to=looked_to if len(found) < where.limit else None)

    def _narrow(self, where: JobFilter) -> tuple[Statement, Statement] | None:
        """Return what reads all that an index knows of, and what counts it; `None` where none is of use."""
        if where.wants_live:
            return self._sql.find_live, self._sql.count_live
        return None if where.schedule is None else (self._sql.find_of_schedule, self._sql.count_of_schedule)

    @read(rows=None)
    def upcoming(self, limit: int) -> Script[list[StoredJob]]:
        """Return the pending jobs that fall due first, by due time."""
        return [job_record(row) for row in (yield Query(self._sql.upcoming, {"limit": limit}))]

    @read()
    def attempts(self, job_id: JobId) -> Script[list[StoredAttempt]]:
        """Return the tries that ended without ending the job, oldest first."""
        found = yield Query(self._sql.attempts, {"job_id": job_id})
        return [_record(StoredAttempt, _ATTEMPT_FIELDS, row) for row in found]

    @read(rows=None)
    def logs(self, job_id: JobId, *, after: tuple[int, int] = (0, 0)) -> Script[list[LogPart]]:
        """Return what the runs of a job have logged, in order."""
        fence, line = after
        found = yield Query(self._sql.logs, {"job_id": job_id, "fence": fence, "line": line})
        return [_record(LogPart, _LOG_FIELDS, row) for row in found]

    @read(rows=None)
    def workers(self) -> Script[list[StoredWorker]]:
        """Return all workers that are known, newest first."""
        return [worker_record(row) for row in (yield Query(self._sql.workers, {}))]


def job_record(row: Row) -> StoredJob:
    """Build a record from the time and the columns of `stored_job`, without what is not to be seen any more.

    What cannot be read is left blank, and the error says so.
    """
    now, *columns = row
    values: dict[str, Any] = dict(zip(_JOB_FIELDS, columns, strict=True))
    values["state"] = State(values["state"])
    found = StoredJob(**values)
    if (problem := row_problem(found)) is not None:
        found = replace(with_blanks(found), error=unreadable_row(problem))
    if found.progress is not None:
        found = replace(found, progress=read_progress(found.progress))
    return as_of(found, now)


def _record(kind: Callable[..., T], fields: Iterable[str], row: Row) -> T:
    """Build a record from its columns."""
    return with_blanks(kind(**dict(zip(fields, row, strict=True))))


def worker_record(row: Row) -> StoredWorker:
    """Build a record from the columns of `workers`."""
    of_itself, stats = row[: len(_WORKER_FIELDS)], row[len(_WORKER_FIELDS) :]
    values: dict[str, Any] = dict(zip(_WORKER_FIELDS, of_itself, strict=True))
    for name in ("queues", "tasks", "declares"):
        values[name] = None if values[name] is None else _decode_json(values[name], tuple[str, ...], ())
    values["fires"] = bool(values["fires"])
    said = with_blanks(WorkerStats(**dict(zip(_STATS_FIELDS, stats, strict=True))))
    return with_blanks(StoredWorker(**values, stats=said))


def _decode_json(text: str, kind: type[T], otherwise: T) -> T:
    """Return what JSON says, or `otherwise` where it was edited by hand."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (ValueError, TypeError, RecursionError):
        return otherwise


def command_record(row: Row) -> Command:
    """Build a record from the columns of `command_columns`."""
    values: dict[str, Any] = dict(zip(_COMMAND_COLUMNS, row, strict=True))
    job, reason = _decode_json(values.pop("body"), tuple[str | None, str | None], (None, None))
    values.update(job=job, reason=reason, dropped=bool(values["dropped"]))
    return Command(**values)
