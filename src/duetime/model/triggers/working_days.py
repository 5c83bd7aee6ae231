"""Working days: occurrences that are moved to one, and the nth of each month."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, time
from typing import Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger
from duetime.model.text import ordinal, shown
from duetime.model.time import LATEST, SECOND, Instant
from duetime.model.triggers.base import (
    NEVER,
    SEARCH_HORIZON,
    NoOccurrence,
    SearchBudget,
    Trigger,
    check_whole,
    set_fields,
)
from duetime.model.triggers.calendars import (
    Calendar,
    Holidays,
    JoinedCalendars,
    Weekdays,
    read_time_of_day,
    time_of_day,
    weekends,
)
from duetime.model.triggers.combined import TriggerWrapper, quoted
from duetime.model.triggers.zones import (
    DAY_SECONDS,
    EPOCH_DAY,
    Zone,
    first_after_wall,
    instant_of_wall,
    wall_second_at,
    zone,
)

Direction: TypeAlias = Literal["next", "previous"]

_MOST_IN_A_ROW = 366
_MOST_MONTHS = 1_212
"""A year more than a search looks ahead."""
_LONGEST_MONTH = 31
_MONTHS_A_YEAR = 12


@dataclass(frozen=True, slots=True)
class DaysOff:
    """Days, by their numbers since 1970, on which no one works, on the wall clock of a zone."""

    calendars: tuple[Weekdays | Holidays, ...]
    place: Zone

    @classmethod
    def of(cls, calendar: Calendar, tz: str) -> DaysOff:
        """Return the days that a calendar excludes; raise `InvalidTrigger` unless it is one of whole days in one zone."""
        parts: list[Weekdays | Holidays] = []
        for part in calendar.parts if isinstance(calendar, JoinedCalendars) else (calendar,):
            if not isinstance(part, (Weekdays, Holidays)):
                text = "working days take a calendar of whole days such as calendars.days_off()"
                raise InvalidTrigger(f"{text}, not {shown(part)}")
            parts.append(part)
        zones = {part.tz or tz for part in parts}
        if len(zones) > 1:
            raise InvalidTrigger(
                f"days off of several zones ({', '.join(sorted(zones))}) have no days in common"
            )
        found, end = cls(tuple(parts), zone(zones.pop())), 0
        dates = {day.toordinal() for part in parts if isinstance(part, Holidays) for day, _ in part.dates}
        for day in sorted(number - EPOCH_DAY for number in dates):
            if day >= end and (end := found.working(day, 1)) - found.working(day, -1) > _MOST_IN_A_ROW:
                raise InvalidTrigger(
                    f"there are more than {_MOST_IN_A_ROW} days off in a row from {_date(day)} on"
                )
        return found

    def has(self, day: int) -> bool:
        """Tell whether a day is one."""
        return any(calendar.reason(day * DAY_SECONDS) for calendar in self.calendars)

    def working(self, day: int, step: int) -> int:
        """Return the first day that is none, from `day` on, forwards or backwards."""
        while self.has(day):
            day += step
        return day

    def day_at(self, instant: Instant) -> int:
        """Return the day of an instant; one that has begun does not come back when the clock is set back."""
        second = instant // SECOND
        period = self.place.period_at(second)
        return max(second + period.offset, period.seen - 1) // DAY_SECONDS

    def begin(self, day: int) -> Instant:
        """Return when a day begins."""
        return instant_of_wall(self.place, day * DAY_SECONDS)


def _date(day: int) -> date:
    return date.fromordinal(EPOCH_DAY + day)


class _OutOfSteps(Exception):
    """Whether an occurrence lies there, a bounded search cannot tell."""


@dataclass(frozen=True, slots=True)
class Rolled(TriggerWrapper):
    """The occurrences of a trigger, those on a day off moved to a working day, at the same time of day.

    Occurrences that meet come once.
    """

    kind = "roll"

    calendar: Calendar
    to: Direction = "next"
    _off: DaysOff = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        TriggerWrapper.__post_init__(self)
        if self.to not in get_args(Direction):
            raise InvalidTrigger(
                f"roll() moves to the 'next' or the 'previous' working day, not {shown(self.to)}"
            )
        off = DaysOff.of(self.calendar, self.tz)
        # Each look asks for some days.
        set_fields(self, calendar=self.calendar.placed(self.tz), cost=10 * self.cost, _off=off)

    def look(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the first occurrence after `instant`, by the working days that they come on."""
        off, through = self._off, instant
        day = off.working(off.day_at(instant), 1)
        while search.left > 0 and (through := max(instant, off.begin(day) - 1)) < search.until:
            search.left -= self.cost
            # The days whose occurrences come on this one.
            first = off.working(day - 1, -1) + 1 if self.to == "next" else day
            last = day if self.to == "next" else off.working(day + 1, 1) - 1
            try:
                coming = [*self._coming(range(first, last + 1), day, instant)]
            except _OutOfSteps:
                break
            if coming:
                return earliest if (earliest := min(coming)) <= LATEST else NEVER
            through = off.begin(last + 1) - 1
            following = self.trigger.first(through)
            if isinstance(following, NoOccurrence):
                if following.proved:
                    return NEVER
                # What follows may be moved back to before that.
                known = off.begin(off.working(off.day_at(following.through), -1)) - 1
                return NoOccurrence(max(through, following.through if self.to == "next" else known))
            day = self._working_day(off.day_at(following))
        return NoOccurrence(through)

    def moved(self, occurrence: Instant) -> Instant:
        """Return where an occurrence of the trigger is moved to, or itself."""
        return self._moved(occurrence, self._working_day(self._off.day_at(occurrence)))

    def count(self, after: Instant, until: Instant) -> int | None:
        """Return None: which occurrences meet, takes a walk."""
        return Trigger.count(self, after, until)

    def describe(self) -> str:
        """Say the rule in English."""
        return f"{quoted(self.trigger)}, moved to the {self.to} working day{_no_work(self.calendar, self.tz)}"

    def _working_day(self, day: int) -> int:
        return self._off.working(day, 1 if self.to == "next" else -1)

    def _moved(self, occurrence: Instant, to: int) -> Instant:
        if self._off.day_at(occurrence) == to:
            return occurrence
        time = wall_second_at(self._off.place, occurrence) % DAY_SECONDS
        return instant_of_wall(self._off.place, to * DAY_SECONDS + time) + occurrence % SECOND

    def _coming(self, days: range, to: int, after: Instant) -> Iterator[Instant]:
        """Yield the first occurrence of each of some days that comes, moved to one of them, after an instant."""
        off, end = self._off, self._off.begin(days.stop)
        found = self._first(off.begin(days.start) - 1, end)
        while found is not None:
            day = off.day_at(found)
            tomorrow = off.begin(day + 1)
            for start in self._starts(day, to, after):
                found = self._first(max(start, off.begin(day)) - 1, tomorrow)
                while found is not None and self._moved(found, to) <= after:
                    found = self._first(found, tomorrow)
                if found is not None:
                    yield self._moved(found, to)
            found = self._first(tomorrow - 1, end)

    def _starts(self, day: int, to: int, after: Instant) -> Iterator[Instant]:
        """Yield from when occurrences of a day may come on another after an instant: again where the clock is set back."""
        place = self._off.place
        wall = wall_second_at(place, after) + (day - to) * DAY_SECONDS
        start = after + 1 if day == to else instant_of_wall(place, max(wall, day * DAY_SECONDS))
        yield start
        change = place.period_at(start // SECOND).end * SECOND
        if day != to and change < self._off.begin(day + 1):
            yield change

    def _first(self, after: Instant, end: Instant) -> Instant | None:
        """Return the first occurrence of the trigger in `after < occurrence < end`."""
        found = self.trigger.first(after, until=end - 1)
        if isinstance(found, NoOccurrence):
            if not found.proved and found.through < end - 1:
                raise _OutOfSteps
            return None
        return found if found < end else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingDay(Trigger):
    """A wall time on the nth working day of each month, from its end if `nth` is negative; not in a month without one."""

    kind = "working_day"

    nth: int
    at: int
    """The second of the day."""
    calendar: Calendar
    tz: str = "UTC"
    _off: DaysOff = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        expected = "a number from 1 to 31, or from -1 to -31 from the end of the month"
        check_whole(self.nth, what="nth", low=-_LONGEST_MONTH, high=_LONGEST_MONTH, expected=expected)
        if not self.nth:
            raise InvalidTrigger(f"nth must be {expected}, not 0")
        check_whole(self.at, what="at", low=0, high=DAY_SECONDS - 1, expected="a second of the day")
        if not isinstance(self.calendar, Calendar):
            raise InvalidTrigger(
                f"off must be a calendar such as calendars.days_off(), not {shown(self.calendar)}"
            )
        place = zone(self.tz)
        off = DaysOff.of(self.calendar, place.key)
        if off.place is not place:
            raise InvalidTrigger(f"the days off are those of {off.place.key}; say tz={off.place.key!r}, too")
        set_fields(self, tz=place.key, calendar=self.calendar.placed(place.key), _off=off)

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`."""
        return first_after_wall(self._off.place, instant, self.first_from)

    def seek(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the first occurrence strictly after `instant`, or how far there is nothing."""
        found = Trigger.seek(self, instant, search)
        return NoOccurrence(instant + SEARCH_HORIZON) if found == NEVER else found

    def first_from(self, wall: int) -> int | None:
        """Return the first wall second at or after `wall` that is the time of such a day, within a hundred years."""
        begin = _date(wall // DAY_SECONDS)
        month = begin.year * _MONTHS_A_YEAR + begin.month - 1
        for number in range(month, month + _MOST_MONTHS):
            first = date(number // _MONTHS_A_YEAR, number % _MONTHS_A_YEAR + 1, 1)
            begins = first.toordinal() - EPOCH_DAY
            length = monthrange(first.year, first.month)[1]
            days = [day for day in range(begins, begins + length) if not self._off.has(day)]
            if len(days) >= abs(self.nth):
                found = days[self.nth - (self.nth > 0)] * DAY_SECONDS + self.at
                if found >= wall:
                    return found
        return None

    def describe(self) -> str:
        """Say the rule in English."""
        day = f"{_place(self.nth)} working day of the month"
        return f"at {time_of_day(self.at)} on the {day}, {self.tz}{_no_work(self.calendar, self.tz)}"


def working_day(
    nth: int, at: str | time, *, off: Calendar | None = None, tz: str | ZoneInfo = "UTC"
) -> WorkingDay:
    """Return the trigger for a time on the nth working day of each month: 1 is the first, -1 the last.

    `off` has the days on which no one works: Saturday and Sunday unless given.
    """
    calendar = weekends() if off is None else off
    return WorkingDay(nth=nth, at=read_time_of_day(at, what="at"), calendar=calendar, tz=zone(tz).key)


def _no_work(calendar: Calendar, tz: str) -> str:
    return f" (no work {calendar.describe(known_tz=tz)})"


def _place(nth: int) -> str:
    if nth > 0:
        return ordinal(nth) if nth > 1 else "first"
    return "last" if nth == -1 else f"{ordinal(-nth)} to last"
