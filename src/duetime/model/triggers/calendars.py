"""Calendars: holidays, weekdays and blackouts that are taken from triggers."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from itertools import islice
from typing import ClassVar, Protocol, Self, cast, runtime_checkable
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger
from duetime.model.text import WEEKDAYS, list_in_words, shown
from duetime.model.time import SECOND, Instant, from_datetime, in_words, to_datetime
from duetime.model.triggers.base import check_instants, check_whole, set_fields, spec_of
from duetime.model.triggers.zones import DAY_SECONDS, EPOCH_DAY, shown_wall, wall_second_at, zone


@runtime_checkable
class Calendar(Protocol):
    """A pure rule that excludes stretches of time, each with its first instant and without its last."""

    __slots__ = ()

    kind: ClassVar[str] = ""
    """Its name where it is stored."""

    def until(self, instant: Instant) -> Instant | None:
        """Return an instant up to which all is excluded, or None if `instant` is open; the end may be excluded, too."""
        ...

    def why(self, instant: Instant) -> str | None:
        """Say why `instant` is excluded, or None if it is not."""
        ...

    def describe(self, *, known_tz: str = "") -> str:
        """Say in English what is excluded; its zone is left out where it is `known_tz`."""
        ...

    def to_spec(self) -> dict[str, object]:
        """Return the calendar as JSON-able data, which the specs of triggers have."""
        return spec_of(self)

    def placed(self, tz: str) -> Calendar:
        """Return this calendar read in `tz`, unless it has a zone of its own."""
        del tz
        return self

    def __or__(self, other: Calendar) -> JoinedCalendars:
        return JoinedCalendars((self, other))


MOST_CALENDARS = 50


@dataclass(frozen=True, slots=True)
class JoinedCalendars(Calendar):
    """Excludes what any of its parts excludes."""

    kind = "joined"

    parts: tuple[Calendar, ...]

    def __post_init__(self) -> None:
        flat: list[Calendar] = []
        for part in self.parts:
            if not isinstance(part, Calendar):
                raise InvalidTrigger(f"join calendars such as calendars.weekends(), not {shown(part)}")
            flat += part.parts if isinstance(part, JoinedCalendars) else [part]
        set_fields(self, parts=tuple(dict.fromkeys(flat)))
        if not 1 <= len(self.parts) <= MOST_CALENDARS:
            raise InvalidTrigger(f"from 1 to {MOST_CALENDARS} calendars can be joined, not {len(self.parts)}")

    def until(self, instant: Instant) -> Instant | None:
        """Return the latest end that a part says."""
        ends = (part.until(instant) for part in self.parts)
        return max((end for end in ends if end is not None), default=None)

    def why(self, instant: Instant) -> str | None:
        """Say why the first part that excludes `instant` does so."""
        return next((why for part in self.parts if (why := part.why(instant)) is not None), None)

    def describe(self, *, known_tz: str = "") -> str:
        """Say in English what is excluded."""
        return " and ".join(part.describe(known_tz=known_tz) for part in self.parts)

    def placed(self, tz: str) -> JoinedCalendars:
        """Return these calendars read in `tz`, except those with a zone of their own."""
        return JoinedCalendars(tuple(part.placed(tz) for part in self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class WallCalendar(Calendar):
    """Excludes what the wall clock of a zone shows; without a zone, that of the trigger it is taken from."""

    tz: str | None = None

    def __post_init__(self) -> None:
        set_fields(self, tz=_zone_key(self.tz))

    @abstractmethod
    def reason(self, wall: int) -> str | None:
        """Say why a wall second is excluded, or None if it is not."""

    def end_of(self, wall: int) -> int:
        """Return a wall second up to which all is excluded, as `wall` is: the midnight after days in a row."""
        end = (wall // DAY_SECONDS + 1) * DAY_SECONDS
        while self.reason(end) is not None:
            end += DAY_SECONDS
        return end

    def until(self, instant: Instant) -> Instant | None:
        """Return the end of what is excluded around `instant`, at most up to the next change of the clock."""
        second = instant // SECOND
        period = zone(self.tz or "UTC").period_at(second)
        wall = second + period.offset
        if self.reason(wall) is None:
            return None
        return min(self.end_of(wall) - period.offset, period.end) * SECOND

    def why(self, instant: Instant) -> str | None:
        """Say why `instant` is excluded, or None if it is not."""
        return self.reason(wall_second_at(zone(self.tz or "UTC"), instant))

    def placed(self, tz: str) -> Self:
        """Return this calendar read in `tz`, unless it has a zone of its own."""
        return replace(self, tz=tz) if self.tz is None else self

    def _in_zone(self, known_tz: str) -> str:
        return "" if self.tz in (None, known_tz) else f" in {self.tz}"


_WEEK = 7
_SHORT_NAMES = [name[:3].upper() for name in WEEKDAYS]
_DAY_NUMBERS = {name.upper(): number % _WEEK for number, name in enumerate((*WEEKDAYS, *_SHORT_NAMES))}
# 1 January 1970 was a Thursday.
_FIRST_WEEKDAY = 3
_LONGEST_DAYS_TEXT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekdays(WallCalendar):
    """Excludes whole days of the week; Monday is 0."""

    kind = "weekdays"

    days: tuple[int, ...]

    def __post_init__(self) -> None:
        WallCalendar.__post_init__(self)
        set_fields(self, days=_checked_weekdays(self.days))
        if len(self.days) == _WEEK:
            raise InvalidTrigger("all seven days of the week are excluded; nothing would ever be due")

    def reason(self, wall: int) -> str | None:
        """Name the day, such as `2026-12-26 is a Saturday`."""
        day = weekday_of_wall(wall)
        return f"{shown_wall(wall):%Y-%m-%d} is a {WEEKDAYS[day]}" if day in self.days else None

    def describe(self, *, known_tz: str = "") -> str:
        """Say in English what is excluded."""
        return f"on {list_in_words(self.days, WEEKDAYS.__getitem__)}{self._in_zone(known_tz)}"


def weekday_of_wall(wall: int) -> int:
    """Return the weekday of a wall second; Monday is 0."""
    return (wall // DAY_SECONDS + _FIRST_WEEKDAY) % _WEEK


def _checked_weekdays(days: Sequence[int]) -> tuple[int, ...]:
    """Return weekday numbers in order and once each; raise `InvalidTrigger` for anything else."""
    if not isinstance(days, (tuple, list)) or not 1 <= len(days) <= _WEEK:
        raise InvalidTrigger(f"the days of a calendar are from one to seven numbers, not {shown(days)}")
    for day in days:
        if isinstance(day, bool) or not isinstance(day, int) or not 0 <= day < _WEEK:
            raise InvalidTrigger(f"a day of the week is a number from 0 (Monday) to 6, not {shown(day)}")
    return tuple(sorted(set(days)))


def read_weekdays(names: str | Iterable[str]) -> tuple[int, ...]:
    """Return the numbers of days written as `SAT`, `Saturday`, `MON-FRI` or `SAT,SUN`."""
    found: set[int] = set()
    for text in [names] if isinstance(names, str) else names:
        if not isinstance(text, str) or len(text) > _LONGEST_DAYS_TEXT:
            raise InvalidTrigger(f"days are names such as 'SAT' or 'MON-FRI', not {shown(text)}")
        for item in text.split(","):
            numbers = [_weekday_number(name, text) for name in item.split("-", 1)]
            # FRI-MON goes on into the next week.
            found |= {(numbers[0] + more) % _WEEK for more in range((numbers[-1] - numbers[0]) % _WEEK + 1)}
    if not found:
        raise InvalidTrigger("no days are given; name some, such as 'SAT' or 'MON-FRI'")
    return tuple(sorted(found))


def _weekday_number(name: str, text: str) -> int:
    number = _DAY_NUMBERS.get(name.strip().upper())
    if number is None:
        raise InvalidTrigger(f"unknown day {shown(name)} in {text!r}; days are {', '.join(_SHORT_NAMES)}")
    return number


MOST_DATES = 10_000

_SHOWN = 3
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Holidays(WallCalendar):
    """Excludes whole dates, each with a name or the empty text."""

    kind = "holidays"

    dates: tuple[tuple[date, str], ...]
    _names: dict[int, str] = field(init=False, repr=False, compare=False)
    """The names by the number of the day."""

    def __post_init__(self) -> None:
        WallCalendar.__post_init__(self)
        if not 1 <= len(self.dates) <= MOST_DATES:
            raise InvalidTrigger(f"holidays() takes at least one and at most {MOST_DATES} dates")
        for day, name in self.dates:
            if not isinstance(day, date) or isinstance(day, datetime):
                raise InvalidTrigger(f"a holiday is a date such as date(2030, 12, 25), not {shown(day)}")
            if not isinstance(name, str) or len(name) > _LONGEST_NAME:
                text = f"the name of the holiday {day} is a text of up to {_LONGEST_NAME} characters"
                raise InvalidTrigger(f"{text}, not {shown(name)}")
        dates = tuple(sorted(dict(self.dates).items()))
        names = {day.toordinal() - EPOCH_DAY: name for day, name in dates}
        set_fields(self, dates=dates, _names=names)

    def reason(self, wall: int) -> str | None:
        """Name the date, such as `2026-12-25 is a holiday (Christmas Day)`."""
        name = self._names.get(wall // DAY_SECONDS)
        if name is None:
            return None
        return f"{shown_wall(wall):%Y-%m-%d} is a holiday{f' ({name})' if name else ''}"

    def describe(self, *, known_tz: str = "") -> str:
        """Say in English what is excluded."""
        days = [str(day) for day, _ in self.dates]
        text = f"{len(days)} holidays" if len(days) > _SHOWN else ", ".join(days)
        return f"on {text}{self._in_zone(known_tz)}"


_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyBlackout(WallCalendar):
    """Excludes `start <= time < end` on the wall clock, from each of `days` into the next if the end is the smaller."""

    kind = "window"

    start: int
    end: int
    days: tuple[int, ...] = tuple(range(_WEEK))

    def __post_init__(self) -> None:
        WallCalendar.__post_init__(self)
        for name, value, high in (("start", self.start, DAY_SECONDS - 1), ("end", self.end, DAY_SECONDS)):
            check_whole(value, what=name, low=0, high=high, expected="a second of the day")
        if self.start == self.end:
            text = f"a blackout from {time_of_day(self.start)} until {time_of_day(self.end)} is empty"
            raise InvalidTrigger(f"{text}; to exclude whole days use weekdays('SAT', 'SUN')")
        set_fields(self, days=_checked_weekdays(self.days))
        if (self.start, self.end, len(self.days)) == (0, DAY_SECONDS, _WEEK):
            raise InvalidTrigger("a blackout of every whole day is all the time; nothing would ever be due")

    def end_of(self, wall: int) -> int:
        """Return the end of the window, or midnight."""
        midnight = wall - wall % DAY_SECONDS
        return midnight + (self.end if wall % DAY_SECONDS < self.end else DAY_SECONDS)

    def reason(self, wall: int) -> str | None:
        """Name the window, such as `23:30:00 lies between 22:00 and 06:00`."""
        second, over_midnight = wall % DAY_SECONDS, self.end < self.start
        # After midnight a window has begun on the day before.
        began = wall - DAY_SECONDS if over_midnight and second < self.end else wall
        begun, open_yet = second >= self.start, second < self.end
        inside = (begun or open_yet) if over_midnight else (begun and open_yet)
        if not inside or weekday_of_wall(began) not in self.days:
            return None
        return f"{shown_wall(wall):%H:%M:%S} lies {self._hours()}"

    def describe(self, *, known_tz: str = "") -> str:
        """Say in English what is excluded."""
        days = "" if len(self.days) == _WEEK else f" on {list_in_words(self.days, WEEKDAYS.__getitem__)}"
        return f"{self._hours()}{days}{self._in_zone(known_tz)}"

    def _hours(self) -> str:
        return f"between {time_of_day(self.start)} and {time_of_day(self.end)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleBlackout(Calendar):
    """Excludes `start <= instant < end`, once."""

    kind = "span"

    start: Instant
    end: Instant

    def __post_init__(self) -> None:
        check_instants(start=self.start, end=self.end)
        if self.end <= self.start:
            raise InvalidTrigger(f"end {in_words(self.end)} must lie after start {in_words(self.start)}")

    def until(self, instant: Instant) -> Instant | None:
        """Return the end, if `instant` lies before it and not before the start."""
        return self.end if self.start <= instant < self.end else None

    def why(self, instant: Instant) -> str | None:
        """Name the span."""
        within = self.start <= instant < self.end
        return f"{in_words(instant)} lies in the blackout {self.describe()}" if within else None

    def describe(self, *, known_tz: str = "") -> str:
        """Say in English what is excluded."""
        del known_tz
        start, end = to_datetime(self.start), to_datetime(self.end)
        return f"from {start:%Y-%m-%d %H:%M:%S} until {end:%Y-%m-%d %H:%M:%S} UTC"


def read_time_of_day(value: object, *, what: str) -> int:
    """Return the second of the day that `22:00`, `22:00:30` or a `time` names; `24:00` is the end of the day."""
    if isinstance(value, time) and value.tzinfo is None and not value.microsecond:
        return value.hour * 3600 + value.minute * 60 + value.second
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        hour, minute, second = (int(part or 0) for part in match.groups())
        total = hour * 3600 + minute * 60 + second
        if max(minute, second) < 60 and total <= DAY_SECONDS:  # noqa: PLR2004 - minutes of an hour
            return total
    raise InvalidTrigger(f"{what} must be a time of day such as '22:00' or a datetime, not {shown(value)}")


def time_of_day(second: int) -> str:
    """Say a second of the day, such as `22:00`."""
    hours, rest = divmod(second, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}" if seconds else f"{hours:02}:{minutes:02}"


def holidays(dates: Iterable[date] | Mapping[date, str], *, tz: str | ZoneInfo | None = None) -> Holidays:
    """Return the calendar that excludes whole dates; a mapping gives each its name."""
    return _named_dates(dates, tz)


def weekdays(*days: str, tz: str | ZoneInfo | None = None) -> Weekdays:
    """Return the calendar that excludes days of the week, such as `weekdays("FRI", "SAT")` or `weekdays("MON-FRI")`."""
    return Weekdays(days=read_weekdays(days), tz=_zone_key(tz))


def weekends(*, tz: str | ZoneInfo | None = None) -> Weekdays:
    """Return the calendar that excludes Saturday and Sunday."""
    return weekdays("SAT", "SUN", tz=tz)


def days_off(
    holidays: Iterable[date] | Mapping[date, str] = (),
    *,
    weekend: str | Iterable[str] = ("SAT", "SUN"),
    tz: str | ZoneInfo | None = None,
) -> Calendar:
    """Return the calendar that excludes the weekend and holidays, which leaves business days."""
    free = Weekdays(days=read_weekdays(weekend), tz=_zone_key(tz))
    if isinstance(holidays, Sized) and not len(holidays):
        return free
    return free | _named_dates(holidays, tz)


def blackout(
    start: str | time | datetime,
    end: str | time | datetime,
    *,
    days: str | Iterable[str] | None = None,
    tz: str | ZoneInfo | None = None,
) -> Calendar:
    """Return the calendar that excludes a window: of every day by wall times, or once by aware datetimes.

    A window such as `blackout("22:00", "06:00", days="FRI")` goes on into the next day; `days` are those it begins on.
    """
    if isinstance(start, datetime) and isinstance(end, datetime):
        if days is not None or tz is not None:
            raise InvalidTrigger("days= and tz= do not go with two datetimes: that blackout happens once")
        return SingleBlackout(start=from_datetime(start, what="start"), end=from_datetime(end, what="end"))
    first, last = read_time_of_day(start, what="start"), read_time_of_day(end, what="end")
    begins = read_weekdays("MON-SUN" if days is None else days)
    return DailyBlackout(start=first, end=last, days=begins, tz=_zone_key(tz))


def _named_dates(dates: Iterable[date] | Mapping[date, str], tz: str | ZoneInfo | None) -> Holidays:
    if isinstance(dates, str) or not isinstance(dates, Iterable):
        raise InvalidTrigger(f"holidays() takes dates such as [date(2030, 12, 25)], not {shown(dates)}")
    # No more are read than are needed to see that there are too many.
    named = cast("Mapping[date, str]", dates) if isinstance(dates, Mapping) else None
    pairs = ((day, "") for day in dates) if named is None else iter(named.items())
    return Holidays(dates=tuple(islice(pairs, MOST_DATES + 1)), tz=_zone_key(tz))


def _zone_key(tz: str | ZoneInfo | None) -> str | None:
    return None if tz is None else zone(tz).key
