"""Equal intervals of elapsed time, and steps of months and years on the calendar of a zone."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal, TypeAlias, overload
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger
from duetime.model.text import counted, shown
from duetime.model.time import (
    LATEST,
    LONGEST_DURATION,
    MILLISECOND,
    SECOND,
    Duration,
    Instant,
    Micros,
    describe_duration,
    from_datetime,
    in_words,
    parse_duration,
)
from duetime.model.triggers.base import (
    Trigger,
    check_instants,
    check_length,
    check_times,
    check_whole,
    set_fields,
)
from duetime.model.triggers.zones import (
    DAY_SECONDS,
    EPOCH_DAY,
    first_after_wall,
    read_start,
    shown_wall,
    wall_second_at,
    zone,
    zone_name_of,
)

Missing: TypeAlias = Literal["last", "skip"]

_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}
_MONTHS_A_YEAR = 12
_MOST_MONTHS = 1_200
_LAST_MONTH = 9_000 * _MONTHS_A_YEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedTrigger(Trigger):
    """A rule that repeats from a start, perhaps up to an end or for a number of times.

    Without a start it counts from the instant it is asked about; a schedule fixes that when it is first stored.
    """

    start: Instant | None = None
    end: Instant | None = None
    times: int | None = None

    def __post_init__(self) -> None:
        check_instants(start=self.start, end=self.end)
        if self.times is not None:
            check_times(self.times, what="times")

    @property
    def last_instant(self) -> Instant:
        """The end, or the end of time."""
        return LATEST if self.end is None else self.end

    def end_in_words(self) -> str:
        """Say when the rule ends, as the end of a phrase; nothing if it does not."""
        text = "" if self.end is None else f", until {in_words(self.end)}"
        if self.times is not None:
            text += f", {counted(self.times, 'time')}"
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Every(RepeatedTrigger):
    """Occurrences at `start`, `start + interval` and so on: not past `end`."""

    kind = "every"

    interval: Micros

    def __post_init__(self) -> None:
        bounds = {"low": MILLISECOND, "high": LONGEST_DURATION}
        check_length(self.interval, what="interval", **bounds, expected="from 1 ms to 100 years")
        RepeatedTrigger.__post_init__(self)

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`."""
        start = instant + self.interval if self.start is None else self.start
        count = max(0, (instant - start) // self.interval + 1)
        due = start + count * self.interval
        return due if due <= self.last_instant else None

    def count(self, after: Instant, until: Instant) -> int:
        """Return how many occurrences lie in `after < occurrence <= until`."""
        until = min(until, self.last_instant)
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
        interval = describe_duration(self.interval)
        text = f"every {interval}" if interval.count(" ") > 1 else f"every {interval.removeprefix('1 ')}"
        if self.start is not None:
            text += f", from {in_words(self.start)}"
        return text + self.end_in_words()


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarSteps(RepeatedTrigger):
    """Occurrences at `start` and each time `months` later, each computed from the start, so that none drifts.

    The time of day is that of the start on the wall clock. A month without the day has its last day instead, or with
    `missing="skip"` none.
    """

    kind = "steps"

    months: int
    tz: str = "UTC"
    missing: Missing = "last"
    past: int = 0
    """How many seconds the clock has been set past the wall time of the start, where a gap swallows that."""

    def __post_init__(self) -> None:
        expected = "a whole number of months from 1 to 1,200 (100 years)"
        check_whole(self.months, what="months", low=1, high=_MOST_MONTHS, expected=expected)
        RepeatedTrigger.__post_init__(self)
        if self.missing not in ("last", "skip"):
            raise InvalidTrigger(f"missing must be 'last' or 'skip', not {shown(self.missing)}")
        check_whole(self.past, what="past", low=0, high=DAY_SECONDS, expected="seconds of up to a day")
        set_fields(self, tz=zone(self.tz).key)

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`."""
        start = instant if self.start is None else self.start
        if instant < start:
            return start if start <= self.last_instant else None
        # Steps are whole seconds on the wall; the fraction of the start rides along.
        fraction = start % SECOND
        place = zone(self.tz)
        anchor = wall_second_at(place, start) - self.past
        found = first_after_wall(place, instant - fraction, lambda wall: self._first_from(wall, anchor))
        return None if found is None or found + fraction > self.last_instant else found + fraction

    def count(self, after: Instant, until: Instant) -> int | None:
        """Return how many steps lie in `after < step <= until`, up to a hundred years: few enough to be walked."""
        if until - after > LONGEST_DURATION:
            return None
        found = 0
        while (following := self.after(after)) is not None and following <= until:
            found, after = found + 1, following
        return found

    def anchored(self, instant: Instant) -> CalendarSteps:
        """Return this rule counting from `instant`, unless it already has a start."""
        return self if self.start is not None else replace(self, start=min(instant, LATEST))

    def describe(self) -> str:
        """Say the rule in English."""
        years, months = divmod(self.months, _MONTHS_A_YEAR)
        counts = ((years, "year"), (months, "month"))
        told = " ".join(f"{count} {unit}{'s' * (count > 1)}" for count, unit in counts if count)
        text = f"every {told}" if years and months else f"every {told.removeprefix('1 ')}"
        if self.start is not None:
            wall = shown_wall(wall_second_at(zone(self.tz), self.start) - self.past)
            text += f", from {wall:%Y-%m-%d %H:%M:%S}"
        text += f", {self.tz}{self.end_in_words()}"
        return f"{text}, where the month has that day" if self.missing == "skip" else text

    def _first_from(self, wall: int, anchor: int) -> int | None:
        """Return the first step at or after a wall second; the calendar repeats, so that a few hundred tries suffice."""
        begin, day = (date.fromordinal(EPOCH_DAY + at // DAY_SECONDS) for at in (anchor, wall))
        first, wanted = (one.year * _MONTHS_A_YEAR + one.month - 1 for one in (begin, day))
        count = max(1, (wanted - first) // self.months)
        while (number := first + count * self.months) <= _LAST_MONTH:
            count += 1
            year, month = divmod(number, _MONTHS_A_YEAR)
            length = monthrange(year, month + 1)[1]
            if begin.day > length and self.missing == "skip":
                continue
            day = date(year, month + 1, min(begin.day, length))
            step = (day.toordinal() - EPOCH_DAY) * DAY_SECONDS + anchor % DAY_SECONDS
            if step >= wall:
                return step
        return None


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
    months: int = ...,
    years: int = ...,
    start: datetime | None = None,
    end: datetime | None = None,
    times: int | None = None,
    tz: str | ZoneInfo | None = None,
    missing: Missing = "last",
) -> CalendarSteps: ...


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
) -> Every | CalendarSteps:
    """Return the trigger for equal intervals, e.g. `every("15m")`, or for calendar steps, e.g. `every(months=1)`.

    The first occurrence is at `start`, or one interval after the schedule was first stored. Months and years go by
    the wall clock of `tz`, which is the zone of `start` unless given; a month without the day has its last day
    instead, or with `missing="skip"` none.
    """
    counts = zip(_UNITS, (seconds, minutes, hours, days, weeks), strict=True)
    units = {unit: count for unit, count in counts if count is not None}
    first = None if start is None else from_datetime(start, what="start")
    last = None if end is None else from_datetime(end, what="end")
    if first is not None and last is not None and last < first:
        raise InvalidTrigger(f"end {end} must not lie before start {start}; nothing would ever be due")
    if months is not None or years is not None:
        if interval is not None or units:
            raise InvalidTrigger("give every() either months and years, or units of elapsed time, not both")
        number, place, past = _months(months, years), zone_name_of(tz, start), 0
        if start is not None:
            first, past = read_start(start, zone(place))
        bounds = {"start": first, "end": last, "times": times}
        return CalendarSteps(months=number, tz=place, missing=missing or "last", past=past, **bounds)
    if tz is not None or missing is not None:
        raise InvalidTrigger("tz and missing are for steps on the calendar, such as every(months=1)")
    return Every(interval=_interval(interval, units), start=first, end=last, times=times)


def _months(months: int | None, years: int | None) -> int:
    for unit, count in (("months", months), ("years", years)):
        if count is not None:
            check_whole(count, what=unit, low=0, high=_MOST_MONTHS, expected="a whole number")
    return (months or 0) + _MONTHS_A_YEAR * (years or 0)


def _interval(interval: Duration | None, units: dict[str, float]) -> Micros:
    if (interval is None) is not bool(units):
        raise InvalidTrigger("give every() one interval, such as every('15m') or every(minutes=15)")
    if interval is not None:
        return parse_duration(interval, what="interval")
    length = 0
    for unit, count in units.items():
        if isinstance(count, bool) or not isinstance(count, (int, float)):
            raise InvalidTrigger(f"{unit} must be a number, not {shown(count)}")
        length += parse_duration(count * _UNITS[unit], what=unit)
    return length
