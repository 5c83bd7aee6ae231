"""Equal intervals of elapsed time, whatever the wall clock does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import overload
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger
from duetime.model import durations
from duetime.model.durations import Duration
from duetime.model.instants import LATEST, MILLISECOND, Instant, Micros, from_datetime, in_words
from duetime.model.triggers.base import Trigger, check_instant, check_length, check_times
from duetime.model.triggers.steps import Missing, Steps, steps

SHORTEST: Micros = MILLISECOND

_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}


@dataclass(frozen=True, slots=True, kw_only=True)
class Every(Trigger):
    """Occurrences at `start`, `start + interval` and so on: not past `end`.

    Without a start it counts from the instant it is asked about; a schedule fixes that when it is first stored.
    """

    interval: Micros
    start: Instant | None = None
    end: Instant | None = None
    times: int | None = None

    def __post_init__(self) -> None:
        expected = "from 1 ms to 100 years"
        check_length(self.interval, what="interval", low=SHORTEST, high=durations.LONGEST, expected=expected)
        for name, value in (("start", self.start), ("end", self.end)):
            if value is not None:
                check_instant(value, what=name)
        if self.times is not None:
            check_times(self.times, what="times")

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`."""
        start = instant + self.interval if self.start is None else self.start
        count = max(0, (instant - start) // self.interval + 1)
        due = start + count * self.interval
        return due if due <= (LATEST if self.end is None else self.end) else None

    def count(self, after: Instant, until: Instant) -> int:
        """Return how many occurrences lie in `after < occurrence <= until`."""
        until = min(until, LATEST if self.end is None else self.end)
        start = after + self.interval if self.start is None else self.start
        before = max(0, (after - start) // self.interval + 1)
        return max(0, (until - start) // self.interval + 1 - before)

    def anchored(self, instant: Instant) -> Every:
        """Return this rule with its first occurrence one interval after `instant`, unless it already has a start."""
        if self.start is not None:
            return self
        return replace(self, start=min(instant + self.interval, LATEST))

    def describe(self) -> str:
        """Say the rule in English."""
        interval = durations.describe(self.interval)
        text = f"every {interval}" if interval.count(" ") > 1 else f"every {interval.removeprefix('1 ')}"
        if self.start is not None:
            text += f", from {in_words(self.start)}"
        if self.end is not None:
            text += f", until {in_words(self.end)}"
        if self.times is not None:
            text += ", 1 time" if self.times == 1 else f", {self.times} times"
        return text

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        optional = {"start": self.start, "end": self.end, "times": self.times}
        given = {key: value for key, value in optional.items() if value is not None}
        return {"type": "every", "interval": self.interval, **given}


@overload
def every(
    interval: Duration | None = None,
    *,
    seconds: float | None = None,
    minutes: float | None = None,
    hours: float | None = None,
    days: float | None = None,
    weeks: float | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    times: int | None = None,
) -> Every: ...


@overload
def every(
    *,
    months: int,
    years: int | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    times: int | None = None,
    tz: str | ZoneInfo | None = None,
    missing: Missing = "last",
) -> Steps: ...


@overload
def every(
    *,
    years: int,
    months: int | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    times: int | None = None,
    tz: str | ZoneInfo | None = None,
    missing: Missing = "last",
) -> Steps: ...


def every(
    interval: Duration | None = None,
    *,
    seconds: float | None = None,
    minutes: float | None = None,
    hours: float | None = None,
    days: float | None = None,
    weeks: float | None = None,
    months: int | None = None,
    years: int | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    times: int | None = None,
    tz: str | ZoneInfo | None = None,
    missing: Missing | None = None,
) -> Every | Steps:
    """Return the trigger for equal intervals, e.g. `every("15m")`, or for calendar steps, e.g. `every(months=1)`.

    The first occurrence is at `start`, or one interval after the schedule was first stored. Months and years go by
    the wall clock of `tz`, which is the zone of `start` unless given; a month without the day has its last day
    instead, or with `missing="skip"` none.
    """
    counts = dict(zip(_UNITS, (seconds, minutes, hours, days, weeks), strict=True))
    given = {unit: count for unit, count in counts.items() if count is not None}
    if months is not None or years is not None:
        if interval is not None or given:
            text = "months and years go by the calendar, other units by elapsed time; give every() one of the two"
            raise InvalidTrigger(f"{text}, such as every(months=1) or every(days=30)")
        missing = "last" if missing is None else missing
        return steps(months=months, years=years, start=start, end=end, times=times, tz=tz, missing=missing)
    if tz is not None or missing is not None:
        raise InvalidTrigger(
            "tz and missing are for steps on the calendar, such as every(months=1, tz='Europe/Riga')"
        )
    rule = Every(
        interval=_interval(interval, given),
        start=None if start is None else from_datetime(start, what="start"),
        end=None if end is None else from_datetime(end, what="end"),
        times=times,
    )
    if rule.start is not None and rule.end is not None and rule.end < rule.start:
        raise InvalidTrigger(f"end {end} must not lie before start {start}; nothing would ever be due")
    return rule


def _interval(interval: Duration | None, counts: dict[str, float]) -> Micros:
    if (interval is None) is not bool(counts):
        text = (
            "give every() one interval, either as a duration or by units: every('15m') or every(minutes=15)"
        )
        raise InvalidTrigger(text)
    if interval is not None:
        return durations.parse(interval, what="interval")
    for unit, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, (int, float)):
            raise InvalidTrigger(
                f"{unit} must be a number, not {type(count).__name__}; use for example every(minutes=15)"
            )
    return sum(durations.parse(count * _UNITS[unit], what=unit) for unit, count in counts.items())
