"""Days of the week, every week."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from duetime.errors import InvalidTrigger
from duetime.model.calendars.wall import WallCalendar, shown_wall
from duetime.model.shown import shown
from duetime.model.triggers.zones import DAY

NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT = tuple(name[:3].upper() for name in NAMES)
_WEEK = 7
# 1 January 1970 was a Thursday.
_FIRST = 3
_LONGEST = 100
_SHORTEST_RUN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekdays(WallCalendar):
    """Excludes whole days of the week; Monday is 0."""

    days: tuple[int, ...]

    def __post_init__(self) -> None:
        WallCalendar.__post_init__(self)
        object.__setattr__(self, "days", check_weekdays(self.days))
        if len(self.days) == _WEEK:
            raise InvalidTrigger("all seven days of the week are excluded; nothing would ever be due")

    def excludes(self, wall: int) -> bool:
        """Tell whether a wall second lies on one of the days."""
        return weekday(wall) in self.days

    def reason(self, wall: int) -> str | None:
        """Name the day, such as `2026-12-26 is a Saturday`."""
        return f"{shown_wall(wall):%Y-%m-%d} is a {NAMES[weekday(wall)]}" if self.excludes(wall) else None

    def describe(self, *, beside: str = "") -> str:
        """Say in English what is excluded."""
        return f"on {told(self.days)}{self._in_zone(beside)}"

    def to_spec(self) -> dict[str, object]:
        """Return the calendar as JSON-able data."""
        return {"type": "weekdays", "days": list(self.days), **self._zone_spec()}


def weekday(wall: int) -> int:
    """Return the weekday of a wall second; Monday is 0."""
    return (wall // DAY + _FIRST) % _WEEK


def check_weekdays(days: Sequence[int]) -> tuple[int, ...]:
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
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise InvalidTrigger(f"days are names such as 'SAT' or 'MON-FRI', not {shown(text)}")
        for item in text.split(","):
            first, dash, last = item.partition("-")
            low = _number(first, text)
            high = _number(last, text) if dash else low
            found |= {day % _WEEK for day in range(low, high + 1 if high >= low else high + 1 + _WEEK)}
    if not found:
        raise InvalidTrigger("no days are given; name some, such as 'SAT' or 'MON-FRI'")
    return tuple(sorted(found))


def told(days: tuple[int, ...]) -> str:
    """Say days of the week in English, three or more in a row as a range."""
    if len(days) >= _SHORTEST_RUN and days == tuple(range(days[0], days[-1] + 1)):
        return f"{NAMES[days[0]]} to {NAMES[days[-1]]}"
    names = [NAMES[day] for day in days]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _number(name: str, text: str) -> int:
    word = name.strip().upper()
    for number, (short, long) in enumerate(zip(_SHORT, NAMES, strict=True)):
        if word in (short, long.upper()):
            return number
    raise InvalidTrigger(f"unknown day {shown(name)} in {shown(text)}; days are {', '.join(_SHORT)}")
