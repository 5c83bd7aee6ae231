"""What users read back of jobs, queues, workers and schedules: the rows of the store with datetimes and decoded values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, Literal, Self, TypeAlias
from zoneinfo import ZoneInfo

import msgspec

from duetime.model.headers import read_headers
from duetime.model.job import FOREVER, NO_TERMS, JobId, JobTerms, OnCrash, split_tags
from duetime.model.limits import UNLIMITED, Limit, Rate
from duetime.model.queues import Registry, RegistryCount, StoredQueue
from duetime.model.schedule.occurrences import searched_until
from duetime.model.schedule.record import Misfire, Overlap, Owner, StoredSchedule
from duetime.model.schedule.runs import ScheduleRuns
from duetime.model.secrets import MASK, mask_arguments, masks_result
from duetime.model.states import State
from duetime.model.stored.audit import StoredAuditEntry
from duetime.model.stored.jobs import StoredAttempt, StoredJob, StoredWorker, with_blanks
from duetime.model.text import MAX_READ, is_deeper, shown
from duetime.model.time import Instant, to_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger, trigger_to_show
from duetime.model.worker import CommandId, WorkerId, WorkerState


def optional_datetime(instant: Instant | None) -> datetime | None:
    """Return an instant as a datetime, if there is one."""
    return None if instant is None else to_datetime(instant)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "datetime": to_datetime,
    "timedelta": lambda micros: timedelta(microseconds=micros),
}
"""How stored times are read, by the annotation of a record's field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """The base of what is read from a row of the store."""

    @classmethod
    def from_row(cls, row: object, **given: Any) -> Self:
        """Take each field that is not given from the row's field of the same name, times as datetimes."""
        for name, reader in _field_readers(cls):  # type: ignore[arg-type]  # a class has a hash
            if name not in given:
                value = getattr(row, name)
                given[name] = value if value is None or reader is None else reader(value)
        return cls(**given)


@cache
def _field_readers(kind: type[StoredRecord]) -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
    return tuple((one.name, _READERS.get(str(one.type).removesuffix(" | None"))) for one in fields(kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord(StoredRecord):
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
    error_type: str | None
    """The class of the error, with its module; `None` for an end that is no exception's, such as a crash."""
    fingerprint: str | None
    """Equal for failures of one task that are of one kind and come from one place, whatever their message."""
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
    headers: Mapping[str, str]
    """Texts by name that were enqueued with it."""
    parent: JobId | None
    """The job that this one repeats, or whose end it was called for."""
    expires_at: datetime | None
    """When it is skipped if it has not started."""
    progress: float | None
    """How far it has come, as its handler says, from 0 to 1."""
    progress_note: str | None

    @classmethod
    def from_stored(cls, job: StoredJob) -> Self:
        """Read a stored job; what cannot be read is shown as such."""
        result, problem = (None, None) if job.result is None else _decoded(job.result)
        if problem is not None:
            problem = f"the stored result cannot be read: {problem}"
        return cls.from_row(
            job,
            arguments=mask_arguments(json_or_text(job.payload), job.secret),
            result=MASK if job.result is not None and masks_result(job.secret) else result,
            result_error=problem or job.result_error,
            cancel_requested=job.cancel_requested_at is not None,
            occurrences=job.span_count,
            first_occurrence=optional_datetime(job.occurrence if job.span_first is None else job.span_first),
            tags=split_tags(job.tags),
            headers={**read_headers(job.headers)},
        )


def editable(job: JobRecord) -> tuple[object, ...]:
    """Return what an edit may change of a job, and what keeps it from being edited."""
    return (job.state, job.attempt, job.due_at, job.expires_at, job.queue, job.priority, job.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord(StoredRecord):
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
    error_type: str | None
    fingerprint: str | None


def attempts_of(job: StoredJob, earlier: Iterable[StoredAttempt]) -> list[AttemptRecord]:
    """Return the tries of a job in order; the last one is in the job itself, if it has begun."""
    # An error that was kept for a time only is gone from all of them at once.
    silent = job.state is State.FAILED and job.failure_ttl is not None and job.error is None
    kept = {"error": None, "traceback": None} if silent else {}
    tries = [
        AttemptRecord.from_row(attempt, **kept)
        for attempt in earlier
        # One that ended after the job was read, or that ended the job after all, is not told twice.
        if attempt.fence < job.fence or (attempt.fence == job.fence and job.started_at is None)
    ]
    if job.started_at is not None:
        ended_at = optional_datetime(job.finished_at)
        tries.append(AttemptRecord.from_row(job, ended_at=ended_at, outcome=job.state))
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
    """Jobs that were cancelled before they started."""
    skipped: int
    at_least: frozenset[Registry]
    """The numbers that are lower bounds: counting stopped there."""
    workers: int
    """How many living workers serve it."""

    @classmethod
    def from_stored(cls, name: str, queue: StoredQueue | None, count: RegistryCount, *, workers: int) -> Self:
        """Put together what a store has for a queue."""
        queue = queue or StoredQueue(name=name, paused_at=None, paused_reason=None, limit=UNLIMITED)
        limit, rate = queue.limit.written()
        return cls(
            name=name,
            paused=queue.paused_at is not None,
            paused_at=optional_datetime(queue.paused_at),
            paused_reason=queue.paused_reason,
            limit=limit,
            rate=rate,
            at_least=frozenset(count.at_least),
            workers=workers,
            **{registry.value: count.jobs[registry] for registry in Registry},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord(StoredRecord):
    """A worker as it was at its last heartbeat."""

    id: WorkerId
    state: WorkerState
    """`stopped` by itself, or `dead`: its lease ran out or its process is gone."""
    host: str
    pid: int
    version: str
    name: str | None
    """What it was called when it was started; several may share a name."""
    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    """The tasks it can run."""
    slots: int
    """How many jobs it runs at once, at most."""
    started_at: datetime
    heartbeat_at: datetime
    lease_until: datetime
    """Until when it counts as alive; for one that has stopped, when it stopped."""
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
        stats, heard = worker.stats, to_datetime(worker.beat_at)
        lag, paused_at = timedelta(microseconds=stats.loop_lag), optional_datetime(stats.paused_at)
        said = asdict(stats) | {"loop_lag": lag, "paused_at": paused_at, "paused": paused_at is not None}
        return cls.from_row(worker, heartbeat_at=heard, **said)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRecord(StoredRecord):
    """A command to a worker, and its answer."""

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


def readable_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the detail of an entry as people read it; a pair stays a pair, what says nothing is left out."""
    found: dict[str, Any] = {}
    for name, value in _with_single_terms(detail):
        match value:
            case [before, after]:
                pair = [None if one is None else _readable_value(name, one) for one in (before, after)]
                found[_FIELD_NAMES.get(name, name)] = pair
            case None:
                pass
            case _:
                found[name] = _readable_value(name, value)
    return found


def _with_single_terms(detail: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each value; in place of the terms, if they can be read, each term that differs."""
    for name, value in detail.items():
        if name != "terms":
            yield name, value
            continue
        try:
            was, became = (asdict(JobTerms.from_text(text)) for text in value)
        except (TypeError, ValueError):
            yield name, value
        else:
            yield from ((term, [was[term], became[term]]) for term in was if was[term] != became[term])


def _readable_value(name: str, value: Any) -> Any:
    """Return a value as people read it; as it is stored, if it cannot be read."""
    try:
        return _FIELD_READERS[name](value) if name in _FIELD_READERS else value
    except (TypeError, ValueError, OverflowError):
        return value


_FIELD_NAMES = {"payload": "arguments"}
_FIELD_READERS: dict[str, Callable[[Any], Any]] = {
    "trigger": lambda text: trigger_to_show(text).describe(),
    "payload": json_or_text,
    "callbacks": json_or_text,
    "headers": json_or_text,
    "tags": list,
    **dict.fromkeys(
        ("occurrence", "until", "start", "end", "parked_at", "due_at", "expires_at"), to_datetime
    ),
    **dict.fromkeys(
        ("timeout", "delay", "misfire_window", "expires", "result_ttl", "failure_ttl"),
        lambda micros: "forever" if micros == FOREVER else timedelta(microseconds=micros),
    ),
}

ScheduleState: TypeAlias = Literal["active", "paused", "parked", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun(StoredRecord):
    """The latest job of a schedule that has run and ended."""

    id: JobId
    state: State
    """`succeeded`, `failed` or `cancelled`."""
    occurrence: datetime | None
    """The occurrence that it stood for; `None` for one that was triggered by hand."""
    started_at: datetime | None
    finished_at: datetime
    error: str | None
    reason: str | None
    """Why it was cancelled or failed, in a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord(StoredRecord):
    """A schedule as it stands."""

    name: str
    task: str
    arguments: Any
    """The arguments by parameter name, as JSON values; the raw text when it cannot be read."""
    trigger: Trigger
    description: str
    """The trigger in English, or why it cannot be read."""
    state: ScheduleState
    """`parked`: no code declares it any longer, or it cannot be read here. `ended`: there is no next time."""
    owner: Owner
    """`code` for one that is declared, `user` for one that was put."""
    next_at: datetime | None
    """The next occurrence, in the zone of its trigger; while it is paused, the first that has not run."""
    searched_until: datetime | None
    """Set while no next occurrence is found: there is none up to this time, when the search goes on."""
    queue: str
    priority: int
    retries: int | None
    timeout: timedelta | None
    tags: tuple[str, ...]
    overlap: Overlap
    overlap_limit: int | None
    misfire: Misfire
    misfire_window: timedelta
    misfire_limit: int
    pause_after: int | None
    paused: bool
    paused_at: datetime | None
    paused_reason: str | None
    paused_by: str | None
    paused_until: datetime | None
    parked: bool
    parked_at: datetime | None
    made: int
    """How many jobs it has made."""
    live: int
    """How many of its jobs are pending or running."""
    last_run: LastRun | None
    """The latest that has run and ended, at its own time or triggered by hand; `None` when there is none on record."""
    succeeded: int
    failed: int
    """How many of its jobs on record went well, and failed for good."""
    at_least: frozenset[State]
    """Which of the two are lower bounds: counting stopped there."""
    created_at: datetime
    updated_at: datetime
    """When it was last changed."""
    rev: int
    """Rises with every change that is made to it, and not when it fires."""

    @classmethod
    def from_stored(cls, schedule: StoredSchedule, runs: ScheduleRuns) -> Self:
        """Read a stored schedule and how it fares; what cannot be read is shown as far as it can."""
        trigger = schedule_trigger(schedule)
        schedule = with_blanks(schedule)
        parked = schedule.parked_at is not None or isinstance(trigger, UnreadableTrigger)
        searched = searched_until(trigger, schedule.next_at)
        following = optional_datetime(schedule.next_at)
        if following is not None:
            following = following.astimezone(ZoneInfo(trigger.tz))
        return cls.from_row(
            schedule,
            arguments=mask_arguments(json_or_text(schedule.payload), _terms_of(schedule.terms).secret),
            trigger=trigger,
            description=trigger.describe(),
            state=_state(schedule, parked=parked),
            next_at=following if searched is None else None,
            searched_until=None if searched is None else following,
            tags=_terms_of(schedule.terms).tags,
            last_run=None if runs.last is None else LastRun.from_row(runs.last),
            succeeded=runs.succeeded,
            failed=runs.failed,
            at_least=runs.at_least,
            paused=schedule.paused_at is not None,
            parked=parked,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleChange:
    """Something that was done to a schedule."""

    at: datetime
    who: str
    """As given by `by`; for what code declares, the process; `duetime` for what no one asked for."""
    verb: str
    """`put`, `edit`, `import`, `declare`, `pause`, `resume`, `skip`, `trigger`, `backfill`, `park` or `delete`."""
    detail: Mapping[str, Any]
    """For a change: the fields that differ, each with what it was and what it is."""

    @classmethod
    def from_stored(cls, entry: StoredAuditEntry) -> Self:
        """Read what the store has kept."""
        detail = readable_detail(entry.detail)
        return cls(at=to_datetime(entry.at), who=entry.who, verb=entry.verb, detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """The result of a backfill, or of its dry run."""

    occurrences: int
    """How many there are in the given time."""
    enqueued: int
    """How many jobs were stored for them."""
    already: int
    """How many had one."""


def _terms_of(text: str | None) -> JobTerms:
    try:
        return JobTerms.from_text(text)
    except ValueError:
        return NO_TERMS


def _state(schedule: StoredSchedule, *, parked: bool) -> ScheduleState:
    if parked:
        return "parked"
    if schedule.next_at is None:
        return "ended"
    return "active" if schedule.paused_at is None else "paused"
