"""A cron rule as bit masks: the days of a month that match, the next wall time that does, and how many there are."""

from __future__ import annotations

from calendar import isleap
from dataclasses import dataclass, field
from datetime import date

from duetime.model.triggers.base import set_fields
from duetime.model.triggers.zones import DAY_SECONDS, EPOCH_DAY

LAST_YEAR = 9_000
ALL_YEARS = -1
"""The mask of all years: each bit of it is set."""
LAST_DAY = 63
"""The bit for the last day of a month, above those for the days before it."""
FIRST_BACK = LAST_DAY - 30
"""The bit for the day that comes thirty days before the last."""
LAST_WEEK = 5
WEEK = 7
LONGEST_MONTHS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_FEBRUARY = 2
_SATURDAY, _SUNDAY = 6, 0
# Times a mask of seven weekdays, this repeats it over six weeks: enough for a month that begins on any weekday.
_SIX_WEEKS = sum(1 << WEEK * week for week in range(6))


def lowest_bit(mask: int) -> int:
    """Return the position of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


def bit_positions(mask: int) -> list[int]:
    """Return the positions of all bits that are set, in order."""
    found: list[int] = []
    while mask:
        found.append(lowest_bit(mask))
        mask &= mask - 1
    return found


def _below(position: int) -> int:
    """Return a mask of all bits below a position."""
    return (1 << position) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CronDays:
    """Which days of a month match; weekdays count from Sunday = 0."""

    dates: int
    """Bits 1 to 31 are for days counted from the first of the month, bits 33 to 63 for those counted back from the last."""
    near: int
    """The same, for the Monday to Friday nearest to a day."""
    weekdays: int
    nth: int
    """Seven bits for the first of each weekday in the month, seven for the second and so on, at last for the last."""
    either: bool

    def in_month(self, year: int, month: int) -> int:
        """Return the matching days of one month as a mask, bit 1 for the first."""
        first = date(year, month, 1).isoweekday() % WEEK
        length = 28 if month == _FEBRUARY and not isleap(year) else LONGEST_MONTHS[month]
        dates = self.dates | self.dates >> LAST_DAY - length
        weekdays = self.weekdays * _SIX_WEEKS >> first << 1
        for near in bit_positions(self.near):
            day = near if near < FIRST_BACK else near - LAST_DAY + length
            if 1 <= day <= length:
                dates |= 1 << _nearest_workday(day, first=first, length=length)
        for position in bit_positions(self.nth):
            week, weekday = divmod(position, WEEK)
            last = length - (first + length - 1 - weekday) % WEEK
            weekdays |= 1 << (last if week == LAST_WEEK else 1 + (weekday - first) % WEEK + WEEK * week)
        return (dates | weekdays if self.either else dates & weekdays) & (2 << length) - 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CronFields:
    """A whole cron rule; `floating` rules follow the wall clock through its changes, `hashed` ones depend on a seed."""

    seconds: int
    minutes: int
    hours: int
    months: int
    days: CronDays
    years: int
    floating: bool
    hashed: bool
    day_minutes: int = field(init=False, repr=False, compare=False)
    """The minutes of a day that match."""

    def __post_init__(self) -> None:
        set_fields(self, day_minutes=sum(self.minutes << 60 * hour for hour in bit_positions(self.hours)))

    def first_from(self, wall: int) -> int | None:
        """Return the first matching wall time at or after `wall`, both as seconds since 1970 on the wall clock."""
        number, second = divmod(wall, DAY_SECONDS)
        today = date.fromordinal(EPOCH_DAY + number)
        due = self._due_in(today.year, today.month) >> today.day
        if due & 1 and (time := self._time_from(second)) is not None:
            return wall - second + time
        rest = due >> 1
        later = number + 1 + lowest_bit(rest) if rest else self._first_day_after(today.year, today.month)
        if later is None:
            return None
        return later * DAY_SECONDS + lowest_bit(self.day_minutes) * 60 + lowest_bit(self.seconds)

    def count(self, start: int, end: int) -> int:
        """Return how many wall times `start <= wall < end` match, in as many steps as there are months between."""
        (first, second), (last, until) = divmod(start, DAY_SECONDS), divmod(end, DAY_SECONDS)
        begins, ends = (date.fromordinal(EPOCH_DAY + number) for number in (first, last))
        found = self._days_between(begins, ends) * self._times_before(DAY_SECONDS)
        if self._due_in(ends.year, ends.month) >> ends.day & 1:
            found += self._times_before(until)
        if self._due_in(begins.year, begins.month) >> begins.day & 1:
            found -= self._times_before(second)
        return found

    def _due_in(self, year: int, month: int) -> int:
        return self.days.in_month(year, month) if self.months >> month & self.years >> year & 1 else 0

    def _days_between(self, start: date, end: date) -> int:
        found = (self._due_in(end.year, end.month) & _below(end.day)).bit_count()
        found -= (self._due_in(start.year, start.month) & _below(start.day)).bit_count()
        for number in range(start.year * 12 + start.month - 1, end.year * 12 + end.month - 1):
            year, month = divmod(number, 12)
            found += self._due_in(year, month + 1).bit_count()
        return found

    def _times_before(self, second: int) -> int:
        minute, second = divmod(second, 60)
        found = (self.day_minutes & _below(minute)).bit_count() * self.seconds.bit_count()
        if self.day_minutes >> minute & 1:
            found += (self.seconds & _below(second)).bit_count()
        return found

    def _time_from(self, second: int) -> int | None:
        minute, second = divmod(second, 60)
        if self.day_minutes >> minute & 1 and (rest := self.seconds >> second):
            return minute * 60 + second + lowest_bit(rest)
        if rest := self.day_minutes >> minute + 1:
            return (minute + 1 + lowest_bit(rest)) * 60 + lowest_bit(self.seconds)
        return None

    def _first_day_after(self, year: int, month: int) -> int | None:
        """Return the first matching day of a later month, as days since 1970."""
        months = self.months >> month + 1 << month + 1 if self.years >> year & 1 else 0
        while True:
            while months:
                month = lowest_bit(months)
                if due := self.days.in_month(year, month):
                    return date(year, month, lowest_bit(due)).toordinal() - EPOCH_DAY
                months &= months - 1
            if not (later := self.years >> year + 1):
                return None
            year += 1 + lowest_bit(later)
            if year > LAST_YEAR:
                return None
            months = self.months


def _nearest_workday(day: int, *, first: int, length: int) -> int:
    weekday = (first + day - 1) % WEEK
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day
