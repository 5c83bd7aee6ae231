"""What happens to jobs and workers, as events that programs can listen to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from duetime.model.job import JobId
from duetime.model.outcome import Settlement, cancel_beats
from duetime.model.states import State
from duetime.model.worker import WorkerId


class EventKind(StrEnum):
    """What has happened."""

    JOB_STARTED = "job.started"
    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_RETRYING = "job.retrying"
    JOB_SNOOZED = "job.snoozed"
    JOB_CANCELLED = "job.cancelled"
    JOB_SKIPPED = "job.skipped"
    JOB_INTERRUPTED = "job.interrupted"
    JOB_LOST = "job.lost"
    WORKER_STARTED = "worker.started"
    WORKER_PAUSED = "worker.paused"
    WORKER_RESUMED = "worker.resumed"
    WORKER_LOST = "worker.lost"
    WORKER_STOPPED = "worker.stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that a worker of this process has done or seen."""

    kind: EventKind
    at: datetime
    worker: WorkerId
    """The one that tells it."""
    job: JobId | None = None
    task: str | None = None
    queue: str | None = None
    attempt: int | None = None
    """Which try of the job it was, from 1."""
    error: str | None = None
    reason: str | None = None


def kind_of(settlement: Settlement, *, cancelling: bool) -> EventKind | None:
    """Return the kind of event for a settlement; `None` if there is none, as for an unused claim."""
    if cancelling and cancel_beats(settlement.state):
        return EventKind.JOB_CANCELLED
    if settlement.state is not State.PENDING:
        return EventKind(f"job.{settlement.state}")
    if settlement.attempt in {"snoozed", "interrupted", "lost"}:
        return EventKind(f"job.{settlement.attempt}")
    return None if settlement.attempt is None else EventKind.JOB_RETRYING
