"""Jobs, attempts and workers as they are read back from a store, and what is made of them: a job once more, the workers alive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from duetime.errors import JobActive
from duetime.model.ids import new_job_id
from duetime.model.job import JobId, JobTerms, NewJob, OnCrash, split_tags
from duetime.model.states import State
from duetime.model.task import JobOptions
from duetime.model.time import Instant, Micros
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


@dataclass(frozen=True, slots=True)
class LiveWorkers:
    """The workers that are alive."""

    alive: tuple[StoredWorker, ...] = ()

    @classmethod
    def of(cls, workers: Iterable[StoredWorker]) -> Self:
        """Leave out those that have stopped or died."""
        return cls(tuple(worker for worker in workers if worker.state == "alive"))

    @property
    def fires(self) -> bool:
        """Whether one of them fires schedules."""
        return any(worker.fires for worker in self.alive)

    @property
    def queues(self) -> frozenset[str]:
        """The queues that they work on; empty when none of them runs jobs."""
        return frozenset(queue for worker in self.alive for queue in worker.queues)

    def serving(self, queue: str) -> list[StoredWorker]:
        """Return those that work on a queue."""
        return [worker for worker in self.alive if queue in worker.queues]

    def knows(self, task: str) -> bool | None:
        """Tell whether one of them can run a task; `None` when there is nobody who runs jobs, and so nobody to tell."""
        return any(task in worker.tasks for worker in self.alive) if self.queues else None


def job_once_more(old: StoredJob, options: JobOptions) -> NewJob:
    """Return a job like one that has ended, all but its deadline, its key and its place in a schedule."""
    if not old.state.terminal:
        raise JobActive(f"job {old.id} of {old.task} is {old.state}; it can be run again when it has ended")
    terms = JobTerms(
        tags=split_tags(old.tags),
        callbacks=old.callbacks,
        gate=old.gate,
        result_ttl=old.result_ttl,
        failure_ttl=old.failure_ttl,
    )
    return NewJob(
        id=new_job_id(),
        task=old.task,
        payload=old.payload,
        due_at=options.at,
        delay=options.delay,
        queue=old.queue if options.queue is None else options.queue,
        priority=old.priority if options.priority is None else options.priority,
        on_crash=old.on_crash,
        retries=old.retries if options.retries is None else options.retries,
        timeout=old.timeout if options.timeout is None else options.timeout,
        terms=options.over(terms),
        key=options.key,
        parent=old.id,
        expires_at=options.expires_at,
    )
