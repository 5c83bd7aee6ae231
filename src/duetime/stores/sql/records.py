"""Rows to the records of jobs, workers and commands, for those who read; most workers never do, and do not load it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, TypeVar

import msgspec

from duetime.model.command import Command
from duetime.model.oddities import mended, oddity, unreadable
from duetime.model.reports import LogPart
from duetime.model.retention import as_of
from duetime.model.states import State
from duetime.model.stored import StoredAttempt, StoredJob, StoredWorker
from duetime.model.worker import WorkerStats
from duetime.stores.sql.driver import Row

T = TypeVar("T")

_DIGITS: Final = 6
_JOB_FIELDS: Final = tuple(StoredJob.__dataclass_fields__)
_ATTEMPT_FIELDS: Final = tuple(StoredAttempt.__dataclass_fields__)
_WORKER_FIELDS: Final = tuple(name for name in StoredWorker.__dataclass_fields__ if name != "stats")
_STATS_FIELDS: Final = tuple(WorkerStats.__dataclass_fields__)


def job(row: Row) -> StoredJob:
    """Build a record from the time and the columns of `job_columns`, without what is not to be seen any more.

    What cannot be read is left blank, and the error says so.
    """
    now, *columns = row
    values: dict[str, Any] = dict(zip(_JOB_FIELDS, columns, strict=True))
    values["state"] = State(values["state"])
    found = StoredJob(**values)
    if (problem := oddity(found)) is not None:
        found = replace(mended(found), error=unreadable(problem))
    if found.progress is not None:
        # A database may keep it in four bytes.
        found = replace(found, progress=round(found.progress, _DIGITS))
    return as_of(found, now)


def attempt(row: Row) -> StoredAttempt:
    """Build a record from the columns of `attempts`."""
    return mended(StoredAttempt(**dict(zip(_ATTEMPT_FIELDS, row, strict=True))))


def log_part(row: Row) -> LogPart:
    """Build a record from the columns of `logs`."""
    job_id, fence, attempt, line, text = row
    return mended(LogPart(job_id=job_id, fence=fence, attempt=attempt, line=line, text=text))


def worker(row: Row) -> StoredWorker:
    """Build a record from the columns of `workers`."""
    of_itself, stats = row[: len(_WORKER_FIELDS)], row[len(_WORKER_FIELDS) :]
    values: dict[str, Any] = dict(zip(_WORKER_FIELDS, of_itself, strict=True))
    for name in ("queues", "tasks", "declares"):
        values[name] = None if values[name] is None else _read(values[name], tuple[str, ...], ())
    values["fires"] = bool(values["fires"])
    said = mended(WorkerStats(**dict(zip(_STATS_FIELDS, stats, strict=True))))
    return mended(StoredWorker(**values, stats=said))


def _read(text: str, kind: type[T], otherwise: T) -> T:
    """Return what JSON says, or `otherwise` where it was edited by hand."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (ValueError, TypeError, RecursionError):
        return otherwise


def command(row: Row) -> Command:
    """Build a record from the columns of `command_columns`."""
    id_, worker_id, kind, body, created_at, taken_at, done_at, outcome, dropped = row
    job_id, reason = _read(body, tuple[str | None, str | None], (None, None))
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
