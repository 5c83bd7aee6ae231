"""A cron rule as bit masks, and the search for the next wall time that matches them all."""

from __future__ import annotations

from calendar import isleap
from dataclasses import dataclass, replace
from datetime import date

DAY = 86_400
LAST_YEAR = 9_000

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MONTH_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY = 2
_SATURDAY, _SUNDAY = 6, 0
_WEEK = 7
# Times a mask of seven weekdays, this repeats it over six weeks: enough for a month that begins on any weekday.
_SIX_WEEKS = sum(1 << _WEEK * week for week in range(6))
# All fourteen calendars (leap or not, beginning on each weekday) occur in these years.
_EVERY_CALENDAR = range(2000, 2028)


def lowest(mask: int) -> int:
    """Return the position of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


def positions(mask: int) -> list[int]:
    """Return the positions of all bits that are set, in order."""
    return [position for position in range(mask.bit_length()) if mask >> position & 1]


def _below(position: int) -> int:
    """Return a mask of all bits below a position."""
    return (1 << position) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Which days of a month match; weekdays count from Sunday = 0."""

    dates: int
    weekdays: int
    either: bool
    last: bool = False
    last_workday: bool = False
    near: int = 0
    nth: int = 0
    final: int = 0
    also: tuple[Days, ...] = ()
    """What the days must match besides."""

    def in_month(self, year: int, month: int) -> int:
        """Return the matching days of one month as a mask, bit 1 for the first."""
        first = date(year, month, 1).isoweekday() % _WEEK
        length = 29 if month == _FEBRUARY and isleap(year) else _MONTH_LENGTHS[month]
        dates, weekdays = self.dates, self.weekdays * _SIX_WEEKS >> first << 1
        if self.last or self.last_workday or self.near:
            dates |= self._special_dates(first, length)
        if self.nth or self.final:
            weekdays |= self._special_weekdays(first, length)
        found = (dates | weekdays if self.either else dates & weekdays) & (2 << length) - 2
        for days in self.also:
            found &= days.in_month(year, month)
        return found

    def _special_dates(self, first: int, length: int) -> int:
        found = 1 << length if self.last else 0
        if self.last_workday:
            found |= 1 << _nearest_workday(length, first=first, length=length)
        for day in positions(self.near):
            if day <= length:
                found |= 1 << _nearest_workday(day, first=first, length=length)
        return found

    def _special_weekdays(self, first: int, length: int) -> int:
        found = 0
        for position in positions(self.nth):
            week, weekday = divmod(position, _WEEK)
            found |= 1 << 1 + (weekday - first) % _WEEK + _WEEK * week
        for weekday in positions(self.final):
            found |= 1 << length - (first + length - 1 - weekday) % _WEEK
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """A whole cron rule; `floating` rules follow the wall clock through its changes, `hashed` ones depend on a seed."""

    seconds: int
    minutes: int
    hours: int
    months: int
    days: Days
    floating: bool
    hashed: bool

    def meet(self, other: Fields) -> Fields:
        """Return the rule of the wall times that match both; there may be none."""
        return Fields(
            seconds=self.seconds & other.seconds,
            minutes=self.minutes & other.minutes,
            hours=self.hours & other.hours,
            months=self.months & other.months,
            days=replace(self.days, also=(*self.days.also, other.days)),
            floating=self.floating and other.floating,
            hashed=self.hashed or other.hashed,
        )

    def can_come(self) -> bool:
        """Tell whether any time of any date matches at all."""
        months = positions(self.months)
        return bool(self.seconds and self.minutes and self.hours) and any(
            self.days.in_month(year, month) for year in _EVERY_CALENDAR for month in months
        )

    def first_from(self, wall: int) -> int | None:
        """Return the first matching wall time at or after `wall`, both as seconds since 1970 on the wall clock."""
        number, second = divmod(wall, DAY)
        today = date.fromordinal(_EPOCH_ORDINAL + number)
        due = self._due_in(today.year, today.month) >> today.day
        if due & 1 and (time := self._time_from(second)) is not None:
            return wall - second + time
        if rest := due >> 1:
            later: int | None = number + 1 + lowest(rest)
        else:
            later = self._first_day_after(today.year, today.month)
        if later is None:
            return None
        return later * DAY + lowest(self.hours) * 3600 + lowest(self.minutes) * 60 + lowest(self.seconds)

    def count(self, start: int, end: int) -> int:
        """Return how many wall times `start <= wall < end` match, in as many steps as there are months between."""
        (first, second), (last, until) = divmod(start, DAY), divmod(end, DAY)
        begins, ends = (date.fromordinal(_EPOCH_ORDINAL + number) for number in (first, last))
        found = self._days_between(begins, ends) * self._times_before(DAY)
        if self._due_in(ends.year, ends.month) >> ends.day & 1:
            found += self._times_before(until)
        if self._due_in(begins.year, begins.month) >> begins.day & 1:
            found -= self._times_before(second)
        return found

    def _due_in(self, year: int, month: int) -> int:
        return self.days.in_month(year, month) if self.months >> month & 1 else 0

    def _days_between(self, start: date, end: date) -> int:
        found = (self._due_in(end.year, end.month) & _below(end.day)).bit_count()
        found -= (self._due_in(start.year, start.month) & _below(start.day)).bit_count()
        for number in range(start.year * 12 + start.month - 1, end.year * 12 + end.month - 1):
            year, month = divmod(number, 12)
            found += self._due_in(year, month + 1).bit_count()
        return found

    def _times_before(self, second: int) -> int:
        minute, second = divmod(second, 60)
        hour, minute = divmod(minute, 60)
        minutes, seconds = self.minutes.bit_count(), self.seconds.bit_count()
        found = (self.hours & _below(hour)).bit_count() * minutes * seconds
        if self.hours >> hour & 1:
            found += (self.minutes & _below(minute)).bit_count() * seconds
            if self.minutes >> minute & 1:
                found += (self.seconds & _below(second)).bit_count()
        return found

    def _time_from(self, second: int) -> int | None:
        minute, second = divmod(second, 60)
        hour, minute = divmod(minute, 60)
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1 and (rest := self.seconds >> second):
                return hour * 3600 + minute * 60 + second + lowest(rest)
            if rest := self.minutes >> minute + 1:
                return hour * 3600 + (minute + 1 + lowest(rest)) * 60 + lowest(self.seconds)
        if rest := self.hours >> hour + 1:
            return (hour + 1 + lowest(rest)) * 3600 + lowest(self.minutes) * 60 + lowest(self.seconds)
        return None

    def _first_day_after(self, year: int, month: int) -> int | None:
        """Return the first matching day of a later month, as days since 1970."""
        while True:
            if rest := self.months >> month + 1:
                month += 1 + lowest(rest)
            else:
                year, month = year + 1, lowest(self.months)
            if year > LAST_YEAR:
                return None
            if due := self.days.in_month(year, month):
                return date(year, month, lowest(due)).toordinal() - _EPOCH_ORDINAL


def _nearest_workday(day: int, *, first: int, length: int) -> int:
    weekday = (first + day - 1) % _WEEK
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day
