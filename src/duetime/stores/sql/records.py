"""Rows to the records of jobs, workers and commands, for those who read; most workers never do, and do not load it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from duetime.model.command import Command
from duetime.model.reports import LogPart
from duetime.model.retention import as_of
from duetime.model.states import State
from duetime.model.stored import StoredAttempt, StoredJob, StoredWorker
from duetime.model.worker import WorkerStats
from duetime.stores.sql.driver import Row

_DIGITS: Final = 6
_JOB_FIELDS: Final = tuple(StoredJob.__dataclass_fields__)
_ATTEMPT_FIELDS: Final = tuple(StoredAttempt.__dataclass_fields__)
_WORKER_FIELDS: Final = tuple(name for name in StoredWorker.__dataclass_fields__ if name != "stats")
_STATS_FIELDS: Final = tuple(WorkerStats.__dataclass_fields__)


def job(row: Row) -> StoredJob:
    """Build a record from the time and the columns of `job_columns`, without what is not to be seen any more."""
    now, *columns = row
    values: dict[str, Any] = dict(zip(_JOB_FIELDS, columns, strict=True))
    values["state"] = State(values["state"])
    if values["progress"] is not None:
        # A database may keep it in four bytes.
        values["progress"] = round(values["progress"], _DIGITS)
    return as_of(StoredJob(**values), now)


def attempt(row: Row) -> StoredAttempt:
    """Build a record from the columns of `attempts`."""
    return StoredAttempt(**dict(zip(_ATTEMPT_FIELDS, row, strict=True)))


def log_part(row: Row) -> LogPart:
    """Build a record from the columns of `logs`."""
    job_id, fence, attempt, line, text = row
    return LogPart(job_id=job_id, fence=fence, attempt=attempt, line=line, text=text)


def worker(row: Row) -> StoredWorker:
    """Build a record from the columns of `workers`."""
    of_itself, stats = row[: len(_WORKER_FIELDS)], row[len(_WORKER_FIELDS) :]
    values: dict[str, Any] = dict(zip(_WORKER_FIELDS, of_itself, strict=True))
    for name in ("queues", "tasks", "declares"):
        values[name] = (
            None if values[name] is None else tuple(msgspec.json.decode(values[name], type=list[str]))
        )
    values["fires"] = bool(values["fires"])
    return StoredWorker(**values, stats=WorkerStats(**dict(zip(_STATS_FIELDS, stats, strict=True))))


def command(row: Row) -> Command:
    """Build a record from the columns of `command_columns`."""
    id_, worker_id, kind, body, created_at, taken_at, done_at, outcome, dropped = row
    job_id, reason = msgspec.json.decode(body, type=tuple[str | None, str | None])
    return Command(
        id=id_,
        worker=worker_id,
        kind=kind,
        job=job_id,
        reason=reason,
        created_at=created_at,
        taken_at=taken_at,
        done_at=done_at,
        outcome=outcome,
        dropped=bool(dropped),
    )
