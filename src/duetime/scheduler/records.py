"""What users read back: the store's rows with datetimes and decoded values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

import msgspec

from duetime.model.job import JobId, OnCrash, split_tags
from duetime.model.limits import Limit, Rate
from duetime.model.queues import Registry, RegistryCount, StoredQueue
from duetime.model.states import State
from duetime.model.stored import StoredAttempt, StoredJob, StoredWorker
from duetime.model.text import MAX_READ, is_deeper, shown
from duetime.model.time import Instant, Micros, to_datetime
from duetime.model.worker import Command, CommandId, WorkerId, WorkerState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job as it stands."""

    id: JobId
    task: str
    arguments: Any
    """The arguments by parameter name, as JSON values; the raw text when it cannot be read."""
    queue: str
    priority: int
    state: State
    due_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    lateness: timedelta | None
    """How long after its due time the last try started."""
    worker: str | None
    attempt: int
    failures: int
    crashes: int
    on_crash: OnCrash
    result: Any
    result_error: str | None
    """Why there is no result, or why it cannot be read."""
    error: str | None
    traceback: str | None
    reason: str | None
    """Why it was skipped, cancelled or failed, in a word."""
    cancel_requested: bool
    schedule: str | None
    occurrence: datetime | None
    occurrences: int
    """How many skipped occurrences of its schedule this record stands for."""
    first_occurrence: datetime | None
    """The first of them; `occurrence` is the last."""
    key: str | None
    tags: tuple[str, ...]
    parent: JobId | None
    """The job that this one repeats, or whose end it was called for."""
    expires_at: datetime | None
    """When it stops to matter."""
    progress: float | None
    """How far it says it is, from 0 to 1."""
    progress_note: str | None

    @classmethod
    def from_stored(cls, job: StoredJob) -> Self:
        """Read a stored job; what cannot be read is shown as such."""
        result, problem = (None, None) if job.result is None else _decoded(job.result)
        if problem is not None:
            problem = f"the stored result cannot be read: {problem}"
        return cls(
            id=job.id,
            task=job.task,
            arguments=json_or_text(job.payload),
            queue=job.queue,
            priority=job.priority,
            state=job.state,
            due_at=to_datetime(job.due_at),
            created_at=to_datetime(job.created_at),
            started_at=optional_datetime(job.started_at),
            finished_at=optional_datetime(job.finished_at),
            lateness=optional_timedelta(job.lateness),
            worker=job.worker,
            attempt=job.attempt,
            failures=job.failures,
            crashes=job.crashes,
            on_crash=job.on_crash,
            result=result,
            result_error=problem or job.result_error,
            error=job.error,
            traceback=job.traceback,
            reason=job.reason,
            cancel_requested=job.cancel_requested_at is not None,
            schedule=job.schedule,
            occurrence=optional_datetime(job.occurrence),
            occurrences=job.span_count,
            first_occurrence=optional_datetime(job.occurrence if job.span_first is None else job.span_first),
            key=job.key,
            tags=split_tags(job.tags),
            parent=job.parent,
            expires_at=optional_datetime(job.expires_at),
            progress=job.progress,
            progress_note=job.progress_note,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One try of a job."""

    fence: int
    """Rises with every claim of the job."""
    worker: str | None
    due_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str
    """Why the job was tried again; for the last try, the state of the job."""
    error: str | None
    traceback: str | None


def attempts_of(job: StoredJob, earlier: Iterable[StoredAttempt]) -> list[AttemptRecord]:
    """Return the tries of a job in order; the last one is in the job itself, if it has begun."""
    # An error that was kept for a time only is gone from all of them at once.
    silent = job.state is State.FAILED and job.failure_ttl is not None and job.error is None
    tries = [
        AttemptRecord(
            fence=attempt.fence,
            worker=attempt.worker,
            due_at=to_datetime(attempt.due_at),
            started_at=optional_datetime(attempt.started_at),
            ended_at=to_datetime(attempt.ended_at),
            outcome=attempt.outcome,
            error=None if silent else attempt.error,
            traceback=None if silent else attempt.traceback,
        )
        for attempt in earlier
        # One that ended after the job was read, or that ended the job after all, is not told twice.
        if attempt.fence < job.fence or (attempt.fence == job.fence and job.started_at is None)
    ]
    if job.started_at is not None:
        last = AttemptRecord(
            fence=job.fence,
            worker=job.worker,
            due_at=to_datetime(job.due_at),
            started_at=to_datetime(job.started_at),
            ended_at=optional_datetime(job.finished_at),
            outcome=job.state,
            error=job.error,
            traceback=job.traceback,
        )
        tries.append(last)
    return tries


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRecord:
    """A queue as it stands: its settings, and how many jobs it has in each registry."""

    name: str
    paused: bool
    paused_at: datetime | None
    paused_reason: str | None
    limit: Limit | None
    """How many of its jobs may run at once, over all workers."""
    rate: Rate | None
    """How many of its jobs may start in a period, over all workers."""
    scheduled: int
    """Jobs whose time has not come."""
    queued: int
    """Jobs that are due and that no worker has."""
    active: int
    """Jobs that run."""
    finished: int
    failed: int
    """Jobs that failed, or were stopped after they had started."""
    cancelled: int
    """Jobs that were called off before they started."""
    skipped: int
    at_least: frozenset[Registry]
    """The numbers that were counted in part, because there is so much: there may be more."""

    @classmethod
    def from_stored(cls, name: str, queue: StoredQueue | None, count: RegistryCount) -> Self:
        """Put together what a store has for a queue."""
        paused_at = None if queue is None else queue.paused_at
        limit, rate = (None, None) if queue is None else queue.limit.written()
        return cls(
            name=name,
            paused=paused_at is not None,
            paused_at=optional_datetime(paused_at),
            paused_reason=None if queue is None else queue.paused_reason,
            limit=limit,
            rate=rate,
            scheduled=count.jobs[Registry.SCHEDULED],
            queued=count.jobs[Registry.QUEUED],
            active=count.jobs[Registry.ACTIVE],
            finished=count.jobs[Registry.FINISHED],
            failed=count.jobs[Registry.FAILED],
            cancelled=count.jobs[Registry.CANCELLED],
            skipped=count.jobs[Registry.SKIPPED],
            at_least=frozenset(count.at_least),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """A worker as it was when it was last heard of."""

    id: WorkerId
    state: WorkerState
    """`stopped` by itself, or `dead`: its lease ran out or its process is gone."""
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    """The tasks it can run."""
    slots: int
    """How many jobs it runs at once at the most."""
    started_at: datetime
    heartbeat_at: datetime
    """When it was last heard of."""
    lease_until: datetime
    """Until when it is believed to be alive; for one that has stopped, when it did."""
    running: int
    done: int
    failed: int
    """How many jobs run, have run, and ended in failure."""
    loop_lag: timedelta
    """For how long its event loop had been blocked."""
    paused: bool
    paused_at: datetime | None
    paused_reason: str | None
    last_error: str | None
    """What last went wrong in the worker itself, not in a job."""

    @classmethod
    def from_stored(cls, worker: StoredWorker) -> Self:
        """Read a stored worker."""
        stats = worker.stats
        return cls(
            id=worker.id,
            state=worker.state,
            host=worker.host,
            pid=worker.pid,
            version=worker.version,
            queues=worker.queues,
            tasks=worker.tasks,
            slots=worker.slots,
            started_at=to_datetime(worker.started_at),
            heartbeat_at=to_datetime(worker.beat_at),
            lease_until=to_datetime(worker.lease_until),
            running=stats.running,
            done=stats.done,
            failed=stats.failed,
            loop_lag=timedelta(microseconds=stats.loop_lag),
            paused=stats.paused_at is not None,
            paused_at=optional_datetime(stats.paused_at),
            paused_reason=stats.paused_reason,
            last_error=stats.last_error,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRecord:
    """Something a worker was told, and what came of it."""

    id: CommandId
    worker: WorkerId
    kind: str
    """`pause`, `resume`, `stop`, `stop_now`, `stop_job`, `release_job` or `stacks`."""
    job: JobId | None
    reason: str | None
    created_at: datetime
    taken_at: datetime | None
    done_at: datetime | None
    """When it was answered or dropped."""
    outcome: str | None
    """The worker's answer; for a dropped one, why."""
    dropped: bool
    """Whether the worker was gone before it had answered."""

    @classmethod
    def from_stored(cls, command: Command) -> Self:
        """Read a stored command."""
        return cls(
            id=command.id,
            worker=command.worker,
            kind=command.kind,
            job=command.job,
            reason=command.reason,
            created_at=to_datetime(command.created_at),
            taken_at=optional_datetime(command.taken_at),
            done_at=optional_datetime(command.done_at),
            outcome=command.outcome,
            dropped=command.dropped,
        )


def optional_datetime(instant: Instant | None) -> datetime | None:
    """Return an instant as a datetime, if there is one."""
    return None if instant is None else to_datetime(instant)


def optional_timedelta(micros: Micros | None) -> timedelta | None:
    """Return a length as a timedelta, if there is one."""
    return None if micros is None else timedelta(microseconds=micros)


def json_or_text(text: str) -> Any:
    """Return what JSON says, or the raw text when it cannot be read."""
    value, problem = _decoded(text)
    return value if problem is None else text


def _decoded(text: str) -> tuple[Any, str | None]:
    """Return what JSON says, or why it cannot be read."""
    if is_deeper(text.encode(errors="replace"), MAX_READ):
        return None, f"it is nested more than {MAX_READ} deep"
    try:
        return msgspec.json.decode(text), None
    except (ValueError, RecursionError) as error:
        return None, shown(str(error))
