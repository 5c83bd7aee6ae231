"""What an explanation is made from: the job or schedule, its workers and limits, and the time that was asked about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self, TypeAlias
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTime
from duetime.model.job import JobId
from duetime.model.limits import Gate, gate_schedule
from duetime.model.queues import StoredQueue
from duetime.model.schedule.record import StoredSchedule
from duetime.model.stored.audit import StoredAuditEntry
from duetime.model.stored.jobs import LiveWorkers, StoredAttempt, StoredJob, StoredWorker
from duetime.model.time import (
    DAY,
    HOUR,
    LATEST,
    MILLISECOND,
    MINUTE,
    SECOND,
    Instant,
    Micros,
    describe_duration,
    from_datetime,
    to_datetime,
)
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.specs import trigger_if_readable
from duetime.model.triggers.zones import zone
from duetime.model.worker import Command

_SECOND_FORMAT = "%Y-%m-%d %H:%M:%S"


class Sentence(NamedTuple):
    """One fact, and when it happened; `None` for the present state."""

    at: Instant | None
    text: str


Told: TypeAlias = Sentence | str
"""A sentence before it has a type; plain text is about the present."""


def sentences(told: Iterable[Told]) -> tuple[Sentence, ...]:
    """Return sentences; those about the present have no time."""
    return tuple(one if isinstance(one, Sentence) else Sentence(None, one) for one in told)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitFacts:
    """A fleet-wide limit that the job runs under."""

    what: str
    """What it limits, such as `queue mail`."""
    running: int
    most: int | None
    rate: str | None
    """Such as `100 per 1 minute`."""
    again_at: Instant | None
    """When the rate lets the next one start, if it is used up."""

    @classmethod
    def of(
        cls, kind: str, name: str, rule: Gate, *, running: int, starts: Sequence[Instant], now: Instant
    ) -> Self:
        """Describe the limit of a `queue`, or the gate of a `task` or a schedule."""
        schedule = gate_schedule(name) if kind == "task" else None
        return cls(
            what=f"{kind} {name}" if schedule is None else f"schedule {schedule}",
            running=running,
            most=rule.most,
            rate=None if rule.count is None else f"{rule.count} per {describe_duration(rule.period)}",
            again_at=rule.room(running=running, starts=starts, now=now)[1],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The present state, which every explanation needs."""

    now: Instant
    workers: Sequence[StoredWorker] = ()
    queue_paused_at: Instant | None = None
    queue_paused_reason: str | None = None
    tz: str = "UTC"
    """The zone that times are told in."""

    def worker(self, worker_id: str | None) -> StoredWorker | None:
        """Return a worker that is still remembered."""
        return next((worker for worker in self.workers if worker.id == worker_id), None)

    @property
    def fleet(self) -> LiveWorkers:
        """The workers that are there."""
        return LiveWorkers.of(self.workers)

    def moment(self, instant: Instant) -> str:
        """Say a point in time to the second."""
        return f"{to_datetime(instant).astimezone(ZoneInfo(self.tz)):{_SECOND_FORMAT}} {self.tz}"

    def since(self, instant: Instant) -> str:
        """Say how long ago something was, or how far ahead it is."""
        ago = self.now - instant
        return f"in {length(-ago)}" if ago < 0 else f"{length(ago)} ago"

    def worker_name(self, worker_id: str | None) -> str:
        """Name a worker so that an operator finds it."""
        known = self.worker(worker_id)
        if known is None:
            return f"worker {worker_id or 'unknown'}"
        name = f"{known.name}, " if known.name else ""
        return f"worker {known.id} ({name}pid {known.pid} on {known.host})"

    def worker_names(self, workers: Sequence[StoredWorker]) -> str:
        """Name workers so that an operator finds them."""
        return ", ".join(self.worker_name(worker.id) for worker in workers)

    def late_pulse(self, worker: StoredWorker) -> str | None:
        """Say that a living worker has not been heard of for too long, if so; it speaks three times in each lease."""
        if self.now - worker.beat_at <= (worker.lease_until - worker.beat_at) // 2:
            return None
        return (
            f"is late with its pulse: last heard of {self.since(worker.beat_at)}. "
            f"Unless it speaks up, its jobs are taken over after {self.moment(worker.lease_until)}."
        )

    def by_queue(self, queue: str) -> Iterator[str]:
        """Say that a queue is paused, if it is."""
        if self.queue_paused_at is not None:
            why = f": {self.queue_paused_reason}" if self.queue_paused_reason else ""
            yield f"Queue {queue} is paused since {self.moment(self.queue_paused_at)}{why}."

    def by_workers(self, *, queue: str, task: str) -> Iterator[str]:
        """Name the first thing that is missing: a worker, one for the queue, one for the task, one that is not paused."""
        fleet = self.fleet
        if not fleet.queues:
            why = "only fires schedules" if len(fleet.alive) == 1 else "only fire schedules"
            what = f"runs jobs: {self.worker_names(fleet.alive)} {why}" if fleet.alive else "is alive"
            yield f"No worker {what}; start one with: duetime worker MODULE:SCHEDULER"
        elif not (serving := fleet.serving(queue)):
            served = ", ".join(sorted(fleet.queues))
            yield f"No worker serves queue {queue}; those that are alive serve {served}."
        elif not (knowing := [worker for worker in serving if task in worker.tasks]):
            yield f"No worker knows task {task}; queue {queue} is served by {self.worker_names(serving)}."
        elif not self.able_workers(queue=queue, task=task):
            yield f"Every worker that could run it is paused: {self.worker_names(knowing)}."

    def able_workers(self, *, queue: str, task: str) -> list[StoredWorker]:
        """Return the workers that take jobs of a task from a queue now."""
        serving = self.fleet.serving(queue)
        return [one for one in serving if task in one.tasks and one.stats.paused_at is None]


def length(micros: Micros) -> str:
    """Describe a length of time with as much precision as people want."""
    for size, step in ((DAY, HOUR), (HOUR, MINUTE), (MINUTE, SECOND), (SECOND, 100 * MILLISECOND)):
        if micros >= size:
            return describe_duration(micros // step * step)
    return f"{micros // MILLISECOND} milliseconds"


def first_line(text: str) -> str:
    """Return the first line of a user's text, without its full stop, so that a sentence can go on after it."""
    return text.partition("\n")[0].rstrip(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts(Situation):
    """Everything a store knows that bears on one job."""

    job: StoredJob
    attempts: Sequence[StoredAttempt] = ()
    limits: Sequence[LimitFacts] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts(Situation):
    """Everything a store knows that bears on one worker."""

    subject: StoredWorker
    commands: Sequence[Command] = ()
    """The last ones, newest first."""
    queues: Sequence[StoredQueue] = ()


class TimeRange(NamedTuple):
    """A stretch of time; `until` is the first instant after it."""

    since: Instant
    until: Instant

    def has(self, instant: Instant | None) -> bool:
        """Whether an instant lies in it."""
        return instant is not None and self.since <= instant < self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleQuestion:
    """What was asked about, in the zone of the schedule."""

    text: str
    windows: tuple[TimeRange, ...]
    """Two where the clock shows the time twice."""
    remark: str | None = None
    """What the clock did then, if that is not what it does on other days."""


def ask_about(moment: datetime, tz: str) -> ScheduleQuestion:
    """Read a moment, in the zone where it names none; without seconds it stands for the whole minute."""
    if not isinstance(moment, datetime):
        raise InvalidTime(f"at must be a datetime such as datetime(2030, 1, 31, 3), not {moment!r:.80}")
    place, text = ZoneInfo(tz), f"{moment:{_SECOND_FORMAT}} {tz}"
    meant = [moment] * 2
    if moment.utcoffset() is None:
        meant = [moment.replace(tzinfo=place, fold=fold) for fold in (0, 1)]
    first, second = (from_datetime(one, what="at") for one in meant)
    width = 1 if moment.microsecond else SECOND if moment.second else MINUTE
    window = TimeRange(first, first + width)
    if first == second:
        text = f"{to_datetime(first).astimezone(place):{_SECOND_FORMAT}} {tz}"
        utc = "" if tz == "UTC" else f" ({to_datetime(first):{_SECOND_FORMAT}} UTC)"
        return ScheduleQuestion(text=text + utc, windows=(window,))
    if first < second:
        remark = (
            f"{moment:%H:%M:%S} comes twice on this day in {tz}: "
            f"{to_datetime(first):%H:%M:%S} UTC and {to_datetime(second):%H:%M:%S} UTC."
        )
        return ScheduleQuestion(text=text, windows=(window, TimeRange(second, second + width)), remark=remark)
    # In a gap: ask about its end, where what falls into it is made up for.
    change = zone(tz).period_at(first // SECOND).start * SECOND
    opening = to_datetime(change).astimezone(place)
    before = to_datetime(change - SECOND).astimezone(place) + timedelta(seconds=1)
    remark = (
        f"{moment:%H:%M:%S} does not exist on {moment:%Y-%m-%d} in {tz}: the clock goes from {before:%H:%M:%S} to "
        f"{opening:%H:%M:%S}. What is fixed to a time in between comes at {opening:%H:%M:%S}."
    )
    return ScheduleQuestion(text=text, windows=(TimeRange(change, change + width),), remark=remark)


class FieldVersion(NamedTuple):
    """What a field of a schedule was for some time."""

    value: Any
    until: Instant
    """When another value took its place."""
    entry: StoredAuditEntry | None
    """What made another take its place; `None` for the present value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFacts(Situation):
    """Everything a store knows that bears on a schedule at some time."""

    name: str
    schedule: StoredSchedule | None
    """`None` when it was deleted."""
    problem: str | None = None
    """Why its row cannot be read, if it cannot; what is odd in it is blank."""
    question: ScheduleQuestion | None = None
    """`None`: how it stands now."""
    records: Sequence[StoredJob] = ()
    """Those of the time that was asked about and after it, by occurrence: a later one may stand for that time, too."""
    before: Sequence[StoredJob] = ()
    """Records before that time, latest first; jobs only, unless nothing was asked."""
    oldest: StoredJob | None = None
    """The earliest record that is left."""
    entries: Sequence[StoredAuditEntry] = ()
    """What was done to it, newest first."""
    jobs: Mapping[JobId, JobFacts] = field(default_factory=dict[JobId, JobFacts])
    """What is known of the jobs among the records."""

    @property
    def trigger(self) -> Trigger | None:
        """The trigger it has now, or had last."""
        triggers = (trigger_if_readable(version.value) for version in self.versions("trigger"))
        return next((trigger for trigger in triggers if trigger is not None), None)

    def trigger_at(self, instant: Instant) -> Trigger | None:
        """The trigger it had at an instant."""
        return trigger_if_readable(self.value_at("trigger", instant))

    def versions(self, name: str) -> Iterator[FieldVersion]:
        """Yield what a field of the schedule has been, newest first."""
        value = None if self.schedule is None else getattr(self.schedule, name)
        until, entry = LATEST + 1, None
        for change in self.entries:
            if (pair := before_and_after(change, name)) is not None:
                yield FieldVersion(value if value is not None else pair[1], until, entry)
                value, until, entry = pair[0], change.at, change
        yield FieldVersion(value, until, entry)

    def value_at(self, name: str, instant: Instant) -> Any:
        """Return what a field of the schedule was at an instant; `None` when that is not known."""
        return [version.value for version in self.versions(name) if version.until > instant][-1]

    def latest(self, verb: str, *, until: Instant = LATEST) -> StoredAuditEntry | None:
        """Return the latest entry of a verb up to an instant."""
        return next((entry for entry in self.entries if entry.verb == verb and entry.at <= until), None)


def before_and_after(entry: StoredAuditEntry, name: str) -> tuple[Any, Any] | None:
    """Return what a field was and what it became, if an entry changed it."""
    match entry.detail.get(name):
        case [before, after]:
            return before, after
        case _:
            return None
