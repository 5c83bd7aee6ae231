"""Triggers that count what is asked of them, and schedules to decide about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from duetime.model.job import NewJob
from duetime.model.schedule.record import StoredSchedule
from duetime.model.states import State
from duetime.model.time import SECOND, Instant
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.every import Every

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
START = 1_700_000_000_000_000
HOURLY = Every(interval=HOUR, start=START)


@dataclass(slots=True, kw_only=True)
class Counted(Trigger):
    """A trigger that notes how often it is asked; without `can_count` it has to be walked."""

    rule: Trigger
    can_count: bool = True
    times: int | None = None
    late: int = 0
    """How long after its occurrence a job falls due."""
    asked: list[str] = field(default_factory=list[str])

    def after(self, instant: Instant) -> Instant | None:
        self.asked.append("after")
        return self.rule.after(instant)

    def count(self, after: Instant, until: Instant) -> int | None:
        self.asked.append("count")
        return self.rule.count(after, until) if self.can_count else None

    def due(self, occurrence: Instant) -> Instant:
        return occurrence + self.late

    def describe(self) -> str:
        return self.rule.describe()

    def to_spec(self) -> dict[str, object]:
        return self.rule.to_spec()


def record(**changes: Any) -> StoredSchedule:
    """A schedule that is due at the start, once an hour."""
    values: dict[str, Any] = {
        "name": "hourly",
        "task": "greet",
        "payload": '{"user": 1}',
        "trigger": "{}",
        "declared": "",
        "queue": "mail",
        "priority": 2,
        "on_crash": "fail",
        "retries": 3,
        "timeout": 9 * SECOND,
        "misfire_window": HOUR,
        "fired_through": START - HOUR,
        "next_at": START,
        "rev": 7,
    }
    return StoredSchedule(**values | changes)


def told(job: NewJob) -> tuple[State, str | None, int | None, int | None, int]:
    """What a record says of the occurrences it stands for."""
    return job.state, job.reason, job.span_first, job.occurrence, job.span_count
