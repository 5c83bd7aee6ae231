"""Steps of months and years, on the calendar and the wall clock of a zone."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger
from duetime.model import durations
from duetime.model.instants import LATEST, SECOND, Instant, from_datetime, in_words, to_datetime
from duetime.model.shown import shown
from duetime.model.triggers.base import Trigger, check_instant, check_times, check_whole
from duetime.model.triggers.walls import first_after, wall_at, zone_of
from duetime.model.triggers.zones import DAY, Zone, zone

Missing: TypeAlias = Literal["last", "skip"]

_YEAR = 12
_MOST_MONTHS = 1_200
_EPOCH = date(1970, 1, 1).toordinal()
_LAST_MONTH = 9_000 * _YEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Trigger):
    """Occurrences at `start` and every so many months after it, each computed from the start, so that none drifts.

    The time of day is that of the start on the wall clock. A month without the day has its last day instead, or with
    `missing="skip"` none. Without a start it counts from the instant it is asked about; a schedule fixes that when it
    is first stored.
    """

    months: int
    start: Instant | None = None
    end: Instant | None = None
    times: int | None = None
    tz: str = "UTC"
    missing: Missing = "last"
    _zone: Zone = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        expected = "a whole number of months from 1 to 1,200 (100 years)"
        check_whole(self.months, what="months", low=1, high=_MOST_MONTHS, expected=expected)
        for name, value in (("start", self.start), ("end", self.end)):
            if value is not None:
                check_instant(value, what=name)
        if self.times is not None:
            check_times(self.times, what="times")
        if self.missing not in ("last", "skip"):
            raise InvalidTrigger(f"missing must be 'last' or 'skip', not {shown(self.missing)}")
        place = zone(self.tz)
        object.__setattr__(self, "tz", place.key)
        object.__setattr__(self, "_zone", place)

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`."""
        start = instant if self.start is None else self.start
        end = LATEST if self.end is None else self.end
        if instant < start:
            return start if start <= end else None
        # Steps are whole seconds on the wall; the fraction of the start rides along.
        fraction = start % SECOND
        anchor = wall_at(self._zone, start)
        found = first_after(self._zone, instant - fraction, lambda wall: self._first_from(wall, anchor))
        return None if found is None or found + fraction > end else found + fraction

    def count(self, after: Instant, until: Instant) -> int | None:
        """Return how many steps lie in `after < step <= until`, up to a hundred years: few enough to be walked."""
        if until - after > durations.LONGEST:
            return None
        found = 0
        while (following := self.after(after)) is not None and following <= until:
            found, after = found + 1, following
        return found

    def anchored(self, instant: Instant) -> Steps:
        """Return this rule counting from `instant`, unless it already has a start."""
        return self if self.start is not None else replace(self, start=min(instant, LATEST))

    def describe(self) -> str:
        """Say the rule in English."""
        years, months = divmod(self.months, _YEAR)
        counts = ((years, "year"), (months, "month"))
        told = " ".join(f"{count} {unit}{'s' * (count > 1)}" for count, unit in counts if count)
        text = f"every {told}" if years and months else f"every {told.removeprefix('1 ')}"
        if self.start is not None:
            wall = to_datetime(wall_at(self._zone, self.start) * SECOND)
            text += f", from {wall:%Y-%m-%d %H:%M:%S}"
        text += f", {self.tz}"
        if self.end is not None:
            text += f", until {in_words(self.end)}"
        if self.times is not None:
            text += ", 1 time" if self.times == 1 else f", {self.times} times"
        return f"{text}, where the month has that day" if self.missing == "skip" else text

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        optional = {"start": self.start, "end": self.end, "times": self.times}
        given: dict[str, object] = {key: value for key, value in optional.items() if value is not None}
        if self.missing == "skip":
            given["missing"] = self.missing
        return {"type": "steps", "months": self.months, "tz": self.tz, **given}

    def _first_from(self, wall: int, anchor: int) -> int | None:
        """Return the first step at or after a wall second; the calendar repeats, so that a few hundred tries suffice."""
        begin = date.fromordinal(_EPOCH + anchor // DAY)
        first, wanted = _month_number(begin), _month_number(date.fromordinal(_EPOCH + wall // DAY))
        count = max(1, (wanted - first) // self.months)
        while (number := first + count * self.months) <= _LAST_MONTH:
            count += 1
            year, month = divmod(number, _YEAR)
            length = monthrange(year, month + 1)[1]
            if begin.day > length and self.missing == "skip":
                continue
            day = date(year, month + 1, min(begin.day, length))
            step = (day.toordinal() - _EPOCH) * DAY + anchor % DAY
            if step >= wall:
                return step
        return None


def steps(
    *,
    months: int | None,
    years: int | None,
    start: datetime | None,
    end: datetime | None,
    times: int | None,
    tz: str | ZoneInfo | None,
    missing: Missing,
) -> Steps:
    """Return the trigger for calendar steps, as `every(months=..., years=...)` is asked for them."""
    for unit, count in (("months", months), ("years", years)):
        if count is not None:
            check_whole(count, what=unit, low=0, high=_MOST_MONTHS, expected="a whole number")
    rule = Steps(
        months=(months or 0) + _YEAR * (years or 0),
        start=None if start is None else from_datetime(start, what="start"),
        end=None if end is None else from_datetime(end, what="end"),
        times=times,
        tz=zone_of(tz, start),
        missing=missing,
    )
    if rule.start is not None and rule.end is not None and rule.end < rule.start:
        raise InvalidTrigger(f"end {end} must not lie before start {start}; nothing would ever be due")
    return rule


def _month_number(day: date) -> int:
    return day.year * _YEAR + day.month - 1
