"""The wall times that a recurrence rule names: by way of dateutil, or in steps where they come more often than daily."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import gcd
from typing import Any, TypeAlias

from duetime.errors import MissingDriver
from duetime.model.triggers.rrule_text import UNITS, WEEKDAY_CODES
from duetime.model.triggers.zones import DAY_SECONDS

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall time
_MONTHS_A_YEAR = 12
_DAYS_A_WEEK = 7
# The calendar repeats itself, weekdays and all, after 400 years, and dateutil searches up to the year 9999. A search
# that is moved there by whole repetitions looks 100 to 500 years ahead: far enough, and never for ever.
_REPEATS = 400
_REPEATS_SECONDS = 146_097 * DAY_SECONDS
_LATEST_YEAR = 9_899
_HORIZON = 36_525 * DAY_SECONDS
"""How far ahead the steps of a rule are searched."""
_DAY_PARTS = frozenset({"BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYDAY"})


def rule_times(parts: Mapping[str, str], first: int) -> RuleTimes:
    """Return the times of a rule that begins at the wall second `first`; raise `ValueError` if there can be none."""
    known = {name: value for name, value in parts.items() if name != "UNTIL"}
    start = _EPOCH + timedelta(seconds=first)
    return StepTimes.read(known, start) if parts["FREQ"] in UNITS else DayTimes.read(known, start)


def wall_second(moment: datetime) -> int:
    """Return a wall time as a wall second."""
    return (moment - _EPOCH) // timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class DayTimes:
    """The times of a rule by the year, month, week or day, which dateutil tells."""

    parts: dict[str, str]
    """With what they leave open taken from the start, so that dateutil can be asked from anywhere."""
    start: datetime
    dates: Any

    @classmethod
    def read(cls, parts: Mapping[str, str], start: datetime) -> DayTimes:
        """Let dateutil read the parts."""
        full = _completed(parts, start)
        return cls(full, start, _dateutil(full, start))

    def first_from(self, wall: int) -> int | None:
        """Return the first wall second at or after `wall` that a bounded search finds."""
        return next(self.all_from(wall), None)

    def all_from(self, wall: int) -> Iterator[int]:
        """Yield the wall seconds at or after `wall`, as far as a search looks."""
        begin = self._begin(wall)
        moved = _moved(begin)
        wanted = _EPOCH + timedelta(seconds=wall + moved * _REPEATS_SECONDS)
        for found in self.dates.replace(dtstart=begin.replace(year=begin.year + moved * _REPEATS)):
            if found >= wanted:
                yield wall_second(found) - moved * _REPEATS_SECONDS

    def searched(self, wall: int) -> int:
        """Return up to where such a search looks."""
        year = 9_999 - _moved(self._begin(wall)) * _REPEATS
        return wall_second(datetime(year, 12, 31))  # noqa: DTZ001 - a wall time

    def _begin(self, wall: int) -> datetime:
        """Return where the latest period begins that is not after `wall` and a whole number of intervals from the first."""
        start, at = self.start, _EPOCH + timedelta(seconds=wall)
        frequency, size = self.parts["FREQ"], int(self.parts.get("INTERVAL", 1))
        if frequency in ("YEARLY", "MONTHLY"):
            size *= _MONTHS_A_YEAR if frequency == "YEARLY" else 1
            month = start.year * _MONTHS_A_YEAR + (start.month - 1 if frequency == "MONTHLY" else 0)
            month += (at.year * _MONTHS_A_YEAR + at.month - 1 - month) // size * size
            return datetime(month // _MONTHS_A_YEAR, month % _MONTHS_A_YEAR + 1, 1)  # noqa: DTZ001 - a wall time
        day = start.date().toordinal()
        if frequency == "WEEKLY":
            size *= _DAYS_A_WEEK
            day -= (start.weekday() - WEEKDAY_CODES.index(self.parts.get("WKST", "MO"))) % _DAYS_A_WEEK
        day += (at.date().toordinal() - day) // size * size
        return datetime.combine(date.fromordinal(day), datetime.min.time())


def _completed(parts: Mapping[str, str], start: datetime) -> dict[str, str]:
    """Return the parts with what they leave open taken from the start."""
    full, frequency = dict(parts), parts["FREQ"]
    if not parts.keys() & {"BYDAY", "BYYEARDAY", "BYMONTHDAY"}:
        if frequency == "WEEKLY" or ("BYWEEKNO" in parts and frequency != "DAILY"):
            full["BYDAY"] = WEEKDAY_CODES[start.weekday()]
        elif frequency in ("YEARLY", "MONTHLY"):
            full["BYMONTHDAY"] = str(start.day)
            if frequency == "YEARLY":
                full.setdefault("BYMONTH", str(start.month))
    for name, value in (("BYHOUR", start.hour), ("BYMINUTE", start.minute), ("BYSECOND", start.second)):
        full.setdefault(name, str(value))
    return full


def _moved(begin: datetime) -> int:
    """Return by how many repetitions of the calendar a search that begins there is moved."""
    return (_LATEST_YEAR - begin.year) // _REPEATS


_CLOCK = (("BYSECOND", 1, 60), ("BYMINUTE", 60, 60), ("BYHOUR", 3600, 24))
"""The parts that name times, the seconds that one of each has, and how many there are."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The times of a rule by the hour, minute or second: periods at equal distances, if their day and time are chosen."""

    size: int
    """How many seconds a period has."""
    base: int
    """Where the period of the start begins."""
    step: int
    """How many seconds later the next one begins that counts."""
    chosen: int
    """A mask of the periods of a day that count."""
    offsets: list[int]
    """The times within a period."""
    days: DayTimes | None
    """The days that count, by their midnights; `None` if all do."""

    @classmethod
    def read(cls, parts: Mapping[str, str], start: datetime) -> StepTimes:
        """Read which periods count, and which times within them; raise `ValueError` if they never meet."""
        size = UNITS[parts["FREQ"]]
        own = {"BYSECOND": start.second, "BYMINUTE": start.minute}
        chosen, width, offsets = 1, 1, [0]
        for name, unit, count in _CLOCK:
            values = {int(value) for value in parts.get(name, "").split(",") if value}
            if unit < size:
                offsets = [
                    value * unit + offset for value in sorted(values or {own[name]}) for offset in offsets
                ]
            else:
                chosen = sum(chosen << value * width for value in values or range(count))
                width *= count
        if "BYSETPOS" in parts:
            places = {int(place) for place in parts["BYSETPOS"].split(",")}
            counted = [(offset, {place, place - len(offsets) - 1}) for place, offset in enumerate(offsets, 1)]
            offsets = [offset for offset, names in counted if names & places]
            if not offsets:
                raise ValueError("BYSETPOS chooses none of its times")
        base, step = wall_second(start) // size * size, size * int(parts.get("INTERVAL", 1))
        every = gcd(step, DAY_SECONDS) // size
        if "1" not in f"{chosen:b}"[::-1][base // size % every :: every]:
            raise ValueError("its interval passes over all the times that it names")
        days = None
        if parts.keys() & _DAY_PARTS:
            kept = {name: value for name, value in parts.items() if name in _DAY_PARTS or name == "WKST"}
            midnight = datetime.combine(start.date(), datetime.min.time())
            days = DayTimes.read({"FREQ": "DAILY"} | kept, midnight)
        return cls(size, base, step, chosen, offsets, days)

    def first_from(self, wall: int) -> int | None:
        """Return the first wall second at or after `wall` that a bounded search finds."""
        begin = self._aligned(wall - self.offsets[-1])
        for day in self._days_from(begin // DAY_SECONDS, self.searched(wall) // DAY_SECONDS):
            begin = max(begin, self._aligned(day * DAY_SECONDS))
            while begin // DAY_SECONDS == day:
                later = self.chosen >> begin % DAY_SECONDS // self.size
                if later & 1:
                    return next(begin + offset for offset in self.offsets if begin + offset >= wall)
                if not later:
                    break
                begin = self._aligned(begin + (later & -later).bit_length() * self.size - self.size)
        return None

    def searched(self, wall: int) -> int:
        """Return up to where such a search looks."""
        return wall + _HORIZON

    def _aligned(self, wall: int) -> int:
        """Return where the first period begins that counts, at or after a wall second and the start."""
        return self.base + max(0, -((self.base - wall) // self.step)) * self.step

    def _days_from(self, first: int, last: int) -> Iterator[int]:
        """Yield the numbers of the days that count."""
        if self.days is None:
            yield from range(first, last)
            return
        for midnight in self.days.all_from(first * DAY_SECONDS):
            if (day := midnight // DAY_SECONDS) >= last:
                return
            yield day


RuleTimes: TypeAlias = DayTimes | StepTimes
"""The wall seconds that the parts of a rule name."""


def _dateutil(parts: Mapping[str, str], start: datetime) -> Any:
    try:
        from dateutil.rrule import rrulestr
    except ImportError as error:
        raise MissingDriver('rrule() needs python-dateutil: pip install "duetime[rrule]"') from error
    return rrulestr(";".join(f"{name}={value}" for name, value in parts.items()), dtstart=start)
