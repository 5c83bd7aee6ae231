"""Reads for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from duetime.model.ids import first_id_of
from duetime.model.instants import Instant
from duetime.model.job import JobId
from duetime.model.limit import Gate
from duetime.model.registries import LIVE, Registry
from duetime.model.reports import LogPart
from duetime.model.states import State
from duetime.model.stored import StoredAttempt, StoredJob, StoredWorker
from duetime.model.terms import join_tags
from duetime.stores.base import JobFilter
from duetime.stores.sql import records, rows
from duetime.stores.sql.driver import Query, Row, Script, Statement
from duetime.stores.sql.loader import Statements

_BEHIND_ALL: Final = "\N{TILDE}"
"""What comes after every id."""
_NEWEST: Final = 2_000
"""How many jobs are looked at before an index."""
_LIVE_STATES: Final = frozenset({State.PENDING, State.RUNNING})
_UNSUCCESSFUL_STATES: Final = frozenset({State.FAILED, State.CANCELLED, State.SKIPPED})
_UNSUCCESSFUL: Final = frozenset({Registry.FAILED, Registry.CANCELLED, Registry.SKIPPED})


def clock(sql: Statements) -> Script[Instant]:
    """Tell the store's time."""
    found = yield Query(sql.clock, {})
    now: Instant = found[0][0]
    return now


def get(sql: Statements, ids: Sequence[JobId]) -> Script[list[StoredJob]]:
    """Read jobs by id, in the order asked."""
    found = yield Query(sql.get, {"rows": rows.batch((job_id,) for job_id in ids)})
    jobs = {job.id: job for job in map(records.job, found)}
    return [jobs[job_id] for job_id in ids if job_id in jobs]


def find(sql: Statements, where: JobFilter) -> Script[list[StoredJob]]:
    """Read one page of jobs, newest first.

    What is seldom among many may have an index, but one that is not in this order. The newest jobs are looked at
    first: what is not seldom fills the page from there.
    """
    values = {
        "task": where.task,
        "state": where.state,
        "registry": where.registry,
        "queue": where.queue,
        "schedule": where.schedule,
        "key": where.key,
        "tag": where.tag and join_tags((where.tag,)),
        "since": where.since,
        "from_id": "" if where.since is None else first_id_of(where.since),
        "before": where.before or _BEHIND_ALL,
        "limit": where.limit,
    }
    found: list[Row] = []
    narrow = _narrow(sql, where)
    if narrow is not None:
        found = yield Query(sql.find_newest, {**values, "newest": _NEWEST})
    if len(found) < where.limit:
        found = yield Query(narrow or _walk(sql, where), values)
    return [records.job(row) for row in found]


def _narrow(sql: Statements, where: JobFilter) -> Statement | None:
    """Return the statement that finds seldom jobs, if there is one for what is asked for."""
    if where.state in _LIVE_STATES or where.registry in LIVE:
        return sql.find_live
    return None if where.schedule is None else sql.find_of_schedule


def _walk(sql: Statements, where: JobFilter) -> Statement:
    seldom = where.state in _UNSUCCESSFUL_STATES or where.registry in _UNSUCCESSFUL
    return sql.find_unsuccessful if seldom else sql.find


def upcoming(sql: Statements, limit: int) -> Script[list[StoredJob]]:
    """Read the jobs that fall due first."""
    found = yield Query(sql.upcoming, {"limit": limit})
    return [records.job(row) for row in found]


def attempts(sql: Statements, job_id: JobId) -> Script[list[StoredAttempt]]:
    """Read the tries of a job."""
    found = yield Query(sql.attempts, {"job_id": job_id})
    return [records.attempt(row) for row in found]


def logs(sql: Statements, job_id: JobId, *, after: tuple[int, int]) -> Script[list[LogPart]]:
    """Read what the runs of a job have logged."""
    fence, line = after
    found = yield Query(sql.logs, {"job_id": job_id, "fence": fence, "line": line})
    return [records.log_part(row) for row in found]


def workers(sql: Statements) -> Script[list[StoredWorker]]:
    """Read all workers."""
    found = yield Query(sql.workers, {})
    return [records.worker(row) for row in found]


def paused_queues(sql: Statements) -> Script[Mapping[str, str | None]]:
    """Read the queues that hand out nothing."""
    found = yield Query(sql.paused_queues, {})
    paused: dict[str, str | None] = {row[0]: row[1] for row in found}
    return paused


def queue_limits(sql: Statements) -> Script[Mapping[str, Gate]]:
    """Read the limits of queues."""
    found = yield Query(sql.queue_limits, {})
    return {name: Gate(most, count, period or 0) for name, most, count, period in found}


def counts(sql: Statements) -> Script[Mapping[tuple[str, State], int]]:
    """Count jobs by queue and state."""
    found = yield Query(sql.counts, {})
    return {(queue, State(state)): count for queue, state, count in found}
