"""Jobs, attempts and workers as they are read back from a store, and rows with values that this version does not write."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Self, TypeVar, cast, get_args, get_origin

from duetime.errors import JobActive
from duetime.model.ids import new_job_id
from duetime.model.job import Claim, JobId, JobTerms, NewJob, OnCrash, split_tags
from duetime.model.retention import note_on
from duetime.model.states import State
from duetime.model.task import JobOptions
from duetime.model.text import shown
from duetime.model.time import Instant, Micros
from duetime.model.worker import WorkerInfo, WorkerState, WorkerStats


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
    headers: str | None = None
    gate: str | None = None
    error_type: str | None = None
    fingerprint: str | None = None
    secret: str | None = None
    progress: float | None = None
    progress_note: str | None = None

    @property
    def attempt(self) -> int:
        """Which try the job is at, from 1."""
        return self.failures + self.crashes + (0 if self.state is State.FAILED else 1)

    @property
    def lost_result(self) -> str | None:
        """Why its result could not be stored; `None` if it was, or was not to be kept."""
        return None if self.result_error == note_on(self.state, self.result_ttl) else self.result_error

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
    error_type: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWorker(WorkerInfo):
    """A worker as the store has it."""

    state: WorkerState
    """`dead`: its lease ran out or its process is gone."""
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

    def knowing(self, task: str) -> list[StoredWorker]:
        """Return those that can run a task."""
        return [worker for worker in self.alive if task in worker.tasks]

    def knows(self, task: str) -> bool | None:
        """Return whether one of them can run a task; `None` if none of them runs jobs."""
        return bool(self.knowing(task)) if self.queues else None


def job_once_more(old: StoredJob, options: JobOptions) -> NewJob:
    """Return a job like one that has ended, without its deadline, its key and its occurrence."""
    if not old.state.terminal:
        raise JobActive(f"job {old.id} of {old.task} is {old.state}; it can be run again when it has ended")
    terms = JobTerms(
        tags=split_tags(old.tags),
        callbacks=old.callbacks,
        gate=old.gate,
        result_ttl=old.result_ttl,
        failure_ttl=old.failure_ttl,
        headers=old.headers,
        secret=old.secret,
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


Record = TypeVar("Record")


def row_problem(record: object) -> str | None:
    """Say which columns of a record have a wrong type; `None` if none has."""
    return ", ".join(f"{name} is {shown(getattr(record, name))}" for name in _misfits(record)) or None


def with_blanks(record: Record) -> Record:
    """Return a record in which values of a wrong type are blank."""
    if not (found := _misfits(record)):
        return record
    kind: Any = type(record)
    values = {
        name: (None if NoneType in allowed else allowed[0]()) if name in found else getattr(record, name)
        for name, allowed in _expected(kind).items()
    }
    return cast("Record", kind(**values))


def checked_claim(claim: Claim) -> Claim:
    """Return a claim that can be settled; one whose row cannot be read says so, and its job fails as undecodable."""
    if not _misfits_of(Claim, tuple(map(type, claim))):
        return claim
    return with_blanks(claim)._replace(problem=unreadable_row(row_problem(claim) or ""))


def unreadable_row(problem: str) -> str:
    """Say that a row cannot be read, and why."""
    return f"its row cannot be read: {problem}"


def _misfits(record: object) -> tuple[str, ...]:
    """Return the columns whose values have types that this version does not write there."""
    kind: Any = type(record)
    values: list[object] = [getattr(record, name) for name in _expected(kind)]
    return _misfits_of(kind, tuple(map(type, values)))


@cache
def _misfits_of(kind: type, types: tuple[type, ...]) -> tuple[str, ...]:
    pairs = zip(_expected(kind).items(), types, strict=True)
    return tuple(name for (name, allowed), one in pairs if not issubclass(one, allowed))


@cache
def _expected(kind: type) -> dict[str, tuple[type, ...]]:
    return {name: _plain_types(hint) for name, hint in typing.get_type_hints(kind).items()}


def _plain_types(hint: Any) -> tuple[type, ...]:
    """Return the types that values of an annotation have."""
    if get_origin(hint) in (typing.Union, UnionType):
        return tuple(one for part in get_args(hint) for one in _plain_types(part))
    if get_origin(hint) is typing.Literal:
        return (str,)
    return (float, int) if hint is float else (get_origin(hint) or hint,)
