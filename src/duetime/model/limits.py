"""Limits over all workers: how many jobs may run at once, and how many may start in a period."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, NamedTuple

from duetime.errors import InvalidOption
from duetime.model.text import check_whole, shown
from duetime.model.time import SECOND, Duration, Instant, Micros, parse_duration

MAX_LIMIT: Final = 1_000_000
MAX_RATE: Final = 1_000
"""A rate stores each start of its window, so their number is bounded."""

_LONGEST_VALUE: Final = 100
_RECHECK_AFTER: Final[Micros] = SECOND // 2
"""When to look again at a limit that a job without a gate holds: no one is told when that job ends."""


@dataclass(frozen=True, slots=True)
class Limit:
    """At most this number of jobs of a task at once, over all workers; with `by=`, for each value of that argument."""

    most: int
    by: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_whole(self.most, 1, MAX_LIMIT, what="limit")
        _check_by(self.by)


@dataclass(frozen=True, slots=True)
class Rate:
    """At most this number of starts of a task in any stretch of time this long, over all workers."""

    count: int
    per: Duration
    by: str | None = field(default=None, kw_only=True)
    period: Micros = field(init=False, repr=False)
    """The same as `per`, in microseconds."""

    def __post_init__(self) -> None:
        check_whole(self.count, 1, MAX_RATE, what="the count of a rate")
        _check_by(self.by)
        object.__setattr__(self, "period", parse_duration(self.per, what="the period of a rate"))
        if self.period == 0:
            raise InvalidOption("the period of a rate must be longer than 0")


@dataclass(frozen=True, slots=True)
class Gate:
    """What jobs pass before they start, in plain numbers; a field that is not set limits nothing."""

    most: int | None = None
    count: int | None = None
    period: Micros = 0
    by: str | None = None
    """The parameter whose values have a gate each; `None` for one gate for all."""

    def room(self, *, running: int, starts: Sequence[Instant], now: Instant) -> tuple[int, Instant | None]:
        """Return how many may start now, and when the next may start even if no job ends; `None` if that is unknown.

        A start counts until it is a whole period old. One that lies more than a period ahead was noted before the clock
        was set back, and does not count either: otherwise the gate would stay shut until that time comes again.
        """
        free = MAX_LIMIT if self.most is None else max(0, self.most - running)
        if self.count is None:
            return free, None
        recent = sorted(start for start in starts if -self.period <= now - start < self.period)
        allowed = max(0, self.count - len(recent))
        return min(free, allowed), None if allowed else recent[-self.count] + self.period

    def after(self, starts: Sequence[Instant], new: Sequence[Instant]) -> list[Instant]:
        """Return the starts to remember with the new ones; without a rate the old ones, which another version may count."""
        return list(starts) if self.count is None else [*starts, *new][-self.count :]

    def written(self) -> tuple[Limit | None, Rate | None]:
        """Return the same as a user would write it."""
        limit = None if self.most is None else Limit(self.most, by=self.by)
        period = timedelta(microseconds=self.period)
        return limit, None if self.count is None else Rate(self.count, period, by=self.by)


UNLIMITED: Final = Gate()
ONE_AT_A_TIME: Final = Gate(most=1)


@dataclass(slots=True)
class MeasuredLimit:
    """A gate or a limited queue, with the room it has left."""

    rule: Gate
    starts: Sequence[Instant]
    free: int = 0
    again_at: Instant | None = None
    """When time alone will let in the next job."""

    def measure(self, *, running: int, now: Instant, passed: int | None = None) -> None:
        """Compute how many may pass while `running` run, of which `passed` have passed here."""
        self.free, self.again_at = self.rule.room(running=running, starts=self.starts, now=now)
        if passed is not None and running > passed:
            self.again_at = now + _RECHECK_AFTER


class LimitedJob(NamedTuple):
    """A due job under limits; sorted, the most urgent comes first."""

    priority: int
    due_at: Instant
    id: str
    queue: str
    gate: str | None


def choose_limited(
    waiting: Iterable[LimitedJob],
    *,
    gates: Mapping[str, MeasuredLimit],
    queues: Mapping[str, MeasuredLimit],
    wanted: Mapping[str, int],
    most: int,
) -> list[LimitedJob]:
    """Let jobs pass, the most urgent first, while their gate and queue have room and that many of a queue are wanted."""
    left = dict(wanted)
    chosen: list[LimitedJob] = []
    for job in sorted(waiting):
        limits = [limit for limit in (gates.get(job.gate or ""), queues.get(job.queue)) if limit is not None]
        if len(chosen) < most and left[job.queue] > 0 and all(limit.free for limit in limits):
            chosen.append(job)
            left[job.queue] -= 1
            for limit in limits:
                limit.free -= 1
    return chosen


def next_opening(limits: Iterable[MeasuredLimit]) -> Instant | None:
    """Return when one of these limits lets in the next job even if no job ends."""
    return min((limit.again_at for limit in limits if limit.again_at is not None), default=None)


def gate(limit: int | Limit | None, rate: str | Rate | None) -> Gate | None:
    """Check what a user wrote for a task, and return the gate its jobs pass."""
    limited = limit if limit is None or isinstance(limit, Limit) else Limit(limit)
    rated = rate if rate is None or isinstance(rate, Rate) else parse_rate(rate)
    if limited and rated and limited.by != rated.by:
        both = f"limit= goes by {limited.by or 'the whole task'} and rate= by {rated.by or 'the whole task'}"
        raise InvalidOption(f"{both}, but a job passes one gate; give both the same by=")
    if (given := limited or rated) is None:
        return None
    found = Gate(most=limited.most if limited else None, by=given.by)
    return replace(found, count=rated.count, period=rated.period) if rated else found


def parse_rate(text: str) -> Rate:
    """Read a rate such as `"100/1m"`."""
    if not isinstance(text, str):
        raise InvalidOption(f"rate must be text such as '100/1m', or Rate(100, '1m'), not {shown(text)}")
    count, slash, period = text.partition("/")
    if not slash or not count.strip().isdecimal():
        raise InvalidOption(f"rate must be a number per duration such as '100/1m', not {shown(text)}")
    return Rate(int(count), period.strip())


def gate_name(task: str, by: str | None = None, value: str = "") -> str:
    """Name the gate of a task, or of one value, given as JSON; a long value by its hash.

    Task names have no brackets and JSON does not begin with `#`, so no two gates share a name.
    """
    if by is None:
        return task
    if len(value) > _LONGEST_VALUE:
        value = f"#{hashlib.sha256(value.encode()).hexdigest()[:32]}"
    return f"{task}[{by}={value}]"


def schedule_gate(schedule: str) -> str:
    """Name the gate where jobs of a schedule wait for each other, whatever their task; no task has an empty name."""
    return f"[schedule:{schedule}]"


def gate_schedule(gate: str) -> str | None:
    """Return the schedule whose jobs wait for each other at a gate; `None` for the gate of a task's own limit."""
    return gate.removeprefix("[schedule:")[:-1] if gate.startswith("[schedule:") else None


def gate_rule(gate: str, task: str, limits: Mapping[str, Gate]) -> Gate:
    """Return the rule of a gate: one at a time for a schedule, else what the limits say of the task."""
    return limits.get(task, UNLIMITED) if gate_schedule(gate) is None else ONE_AT_A_TIME


def _check_by(by: str | None) -> None:
    if by is not None and (not isinstance(by, str) or not by.isidentifier()):
        raise InvalidOption(f"by= must name a parameter of the task, not {shown(by)}")
