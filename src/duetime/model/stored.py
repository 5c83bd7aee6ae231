"""What is read back of jobs, their attempts and workers; most workers never ask, and do not load it."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.model.instants import Instant, Micros
from duetime.model.job import JobId, OnCrash
from duetime.model.states import State
from duetime.model.worker import WorkerId, WorkerState, WorkerStats


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A job as the store has it."""

    id: JobId
    task: str
    payload: str
    queue: str
    priority: int
    state: State
    due_at: Instant
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    worker: str | None
    fence: int
    failures: int
    crashes: int
    blames: int
    on_crash: OnCrash
    retries: int | None
    timeout: Micros | None
    result: str | None
    result_error: str | None
    error: str | None
    traceback: str | None
    reason: str | None
    cancel_requested_at: Instant | None
    schedule: str | None
    occurrence: Instant | None
    span_first: Instant | None
    span_count: int
    key: str | None = None
    tags: str | None = None
    parent: JobId | None = None
    callbacks: str | None = None
    expires_at: Instant | None = None
    result_ttl: Micros | None = None
    failure_ttl: Micros | None = None
    gate: str | None = None
    progress: float | None = None
    progress_note: str | None = None

    @property
    def attempt(self) -> int:
        """Which try the job is at, from 1."""
        return self.failures + self.crashes + (0 if self.state is State.FAILED else 1)

    @property
    def lateness(self) -> Micros | None:
        """How long after its due time the last try started; `None` while it has not."""
        return None if self.started_at is None else self.started_at - self.due_at


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttempt:
    """A try that ended without ending the job."""

    job_id: JobId
    fence: int
    worker: str | None
    due_at: Instant
    started_at: Instant | None
    ended_at: Instant
    outcome: str
    error: str | None
    traceback: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWorker:
    """A worker as the store has it."""

    id: WorkerId
    state: WorkerState
    """`dead`: its lease ran out or its process is gone."""
    host: str
    host_key: str | None
    pid: int
    pid_started: str | None
    version: str
    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    declares: tuple[str, ...] | None
    """The schedules that its code declares; `None` for code of a version that did not say so."""
    fires: bool
    slots: int
    started_at: Instant
    beat_at: Instant
    lease_until: Instant
    stats: WorkerStats
