"""What operators do: cancel, pause queues, prune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duetime.model.instants import Instant
from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.worker import WorkerId
from duetime.stores.base import CancelAnswer
from duetime.stores.sql import rows
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.loader import Statements


class Cancelled(NamedTuple):
    """What became of each job, and the workers to tell."""

    answers: Mapping[JobId, CancelAnswer]
    workers: frozenset[WorkerId]


class Stretch(NamedTuple):
    """A stretch of jobs that was looked at."""

    ended: list[JobId]
    last: JobId | None
    """Where the next stretch begins; `None` after the last job."""


def cancel(sql: Statements, ids: Sequence[JobId], *, reason: str) -> Script[Cancelled]:
    """Cancel what is pending, flag what is claimed."""
    listed = rows.batch((job_id,) for job_id in ids)
    changed = yield Query(sql.cancel, {"rows": listed, "reason": rows.clean_text(reason)})
    answers = dict.fromkeys(ids, CancelAnswer.UNKNOWN)
    if len(changed) < len(answers):
        known = yield Query(sql.existing, {"rows": listed})
        answers |= {row[0]: CancelAnswer.FINISHED for row in known}
    for job_id, state, _ in changed:
        answers[job_id] = CancelAnswer.CANCELLED if state == State.CANCELLED else CancelAnswer.REQUESTED
    workers = frozenset(
        worker for _, state, worker in changed if state == State.RUNNING and worker is not None
    )
    return Cancelled(answers, workers)


def pause_queue(sql: Statements, queue: str, *, reason: str | None) -> Script[None]:
    """Hand out nothing more from a queue."""
    text = None if reason is None else rows.clean_text(reason)
    yield Query(sql.pause_queue, {"queue": queue, "reason": text})


def resume_queue(sql: Statements, queue: str) -> Script[None]:
    """Hand out jobs of a queue again."""
    yield Query(sql.resume_queue, {"queue": queue})


def prunable(sql: Statements, *, before: Instant, after: JobId, stretch: int) -> Script[Stretch]:
    """Look at the next stretch of jobs and list those that ended before."""
    found = yield Query(sql.prunable, {"before": before, "after": after, "stretch": stretch})
    last = found[-1][0] if len(found) == stretch else None
    return Stretch([job_id for job_id, ended in found if ended], last)


def prune_jobs(sql: Statements, ids: Sequence[JobId], *, before: Instant) -> Script[int]:
    """Delete jobs with their attempts and logs; return how many there were."""
    listed = rows.batch((job_id,) for job_id in ids)
    yield Query(sql.prune_attempts, {"rows": listed})
    yield Query(sql.prune_logs, {"rows": listed})
    gone = yield Query(sql.prune_jobs, {"rows": listed, "before": before})
    return len(gone)


def prune_workers(sql: Statements, *, before: Instant) -> Script[None]:
    """Forget workers that have been gone for long, and what workers were told that long ago."""
    yield Query(sql.prune_workers, {"before": before})
    yield Query(sql.prune_commands, {"before": before})
