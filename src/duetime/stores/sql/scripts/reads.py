"""Reads for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duetime.model.instants import Instant
from duetime.model.job import AttemptRecord, JobId, StoredJob
from duetime.model.limit import Gate
from duetime.model.reports import LogPart
from duetime.model.schedule import StoredSchedule
from duetime.model.states import State
from duetime.model.worker import StoredWorker
from duetime.stores.base import JobFilter
from duetime.stores.sql import rows
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.loader import Statements


def clock(sql: Statements) -> Script[Instant]:
    """Tell the store's time."""
    found = yield Query(sql.clock, {})
    now: Instant = found[0][0]
    return now


def get(sql: Statements, ids: Sequence[JobId]) -> Script[list[StoredJob]]:
    """Read jobs by id, in the order asked."""
    found = yield Query(sql.get, {"rows": rows.batch((job_id,) for job_id in ids)})
    records = {record.id: record for record in map(rows.job, found)}
    return [records[job_id] for job_id in ids if job_id in records]


def find(sql: Statements, where: JobFilter) -> Script[list[StoredJob]]:
    """Read one page of jobs, newest first."""
    values = {
        "task": where.task,
        "state": where.state,
        "queue": where.queue,
        "schedule": where.schedule,
        "before": where.before,
        "limit": where.limit,
    }
    found = yield Query(sql.find, values)
    return [rows.job(row) for row in found]


def upcoming(sql: Statements, limit: int) -> Script[list[StoredJob]]:
    """Read the jobs that fall due first."""
    found = yield Query(sql.upcoming, {"limit": limit})
    return [rows.job(row) for row in found]


def attempts(sql: Statements, job_id: JobId) -> Script[list[AttemptRecord]]:
    """Read the tries of a job."""
    found = yield Query(sql.attempts, {"job_id": job_id})
    return [rows.attempt(row) for row in found]


def logs(sql: Statements, job_id: JobId, *, after: tuple[int, int]) -> Script[list[LogPart]]:
    """Read what the runs of a job have logged."""
    fence, line = after
    found = yield Query(sql.logs, {"job_id": job_id, "fence": fence, "line": line})
    return [rows.log_part(row) for row in found]


def schedules(sql: Statements) -> Script[list[StoredSchedule]]:
    """Read all schedules."""
    found = yield Query(sql.schedules, {})
    return [rows.schedule(row) for row in found]


def workers(sql: Statements) -> Script[list[StoredWorker]]:
    """Read all workers."""
    found = yield Query(sql.workers, {})
    return [rows.worker(row) for row in found]


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
