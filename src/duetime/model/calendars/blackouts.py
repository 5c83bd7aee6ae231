"""Windows of time: every day between two wall times, or once between two instants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time

from duetime.errors import InvalidTrigger
from duetime.model.calendars.base import Calendar
from duetime.model.calendars.wall import WallCalendar, shown_wall
from duetime.model.calendars.weekdays import check_weekdays, told, weekday
from duetime.model.instants import LATEST, Instant, in_words, to_datetime
from duetime.model.shown import shown
from duetime.model.triggers.base import check_instant, check_whole
from duetime.model.triggers.zones import DAY

_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(WallCalendar):
    """Excludes `start <= time < end` on the wall clock, into the next day if the end is the smaller.

    `days` are the weekdays on which it begins.
    """

    start: int
    end: int
    days: tuple[int, ...] = tuple(range(_WEEK))

    def __post_init__(self) -> None:
        WallCalendar.__post_init__(self)
        for name, value, high in (("start", self.start, DAY - 1), ("end", self.end, DAY)):
            check_whole(value, what=name, low=0, high=high, expected="a second of the day")
        if self.start == self.end:
            text = f"a blackout from {_clock(self.start)} until {_clock(self.end)} is empty"
            raise InvalidTrigger(f"{text}; to exclude whole days use weekdays('SAT', 'SUN')")
        object.__setattr__(self, "days", check_weekdays(self.days))
        if (self.start, self.end, len(self.days)) == (0, DAY, _WEEK):
            raise InvalidTrigger("a blackout of every whole day is all the time; nothing would ever be due")

    def excludes(self, wall: int) -> bool:
        """Tell whether a wall second lies in the window of one of the days."""
        second, today = wall % DAY, weekday(wall) in self.days
        if self.start < self.end:
            return today and self.start <= second < self.end
        yesterday = weekday(wall - DAY) in self.days
        return (today and second >= self.start) or (yesterday and second < self.end)

    def boundary(self, wall: int) -> int:
        """Return a wall second up to which nothing changes: the next edge of a window, or midnight."""
        midnight = wall - wall % DAY
        return min(
            edge for edge in (midnight + self.start, midnight + self.end, midnight + DAY) if edge > wall
        )

    def reason(self, wall: int) -> str | None:
        """Name the window, such as `23:30 lies between 22:00 and 06:00`."""
        if not self.excludes(wall):
            return None
        return f"{shown_wall(wall):%H:%M:%S} lies between {_clock(self.start)} and {_clock(self.end)}"

    def describe(self, *, beside: str = "") -> str:
        """Say in English what is excluded."""
        days = "" if len(self.days) == _WEEK else f" on {told(self.days)}"
        return f"between {_clock(self.start)} and {_clock(self.end)}{days}{self._in_zone(beside)}"

    def to_spec(self) -> dict[str, object]:
        """Return the calendar as JSON-able data."""
        days = {} if len(self.days) == _WEEK else {"days": list(self.days)}
        return {"type": "window", "start": self.start, "end": self.end, **days, **self._zone_spec()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span(Calendar):
    """Excludes `start <= instant < end`, once."""

    start: Instant
    end: Instant

    def __post_init__(self) -> None:
        check_instant(self.start, what="start")
        check_instant(self.end, what="end")
        if self.end <= self.start:
            raise InvalidTrigger(
                f"end {to_datetime(self.end)} must lie after start {to_datetime(self.start)}"
            )

    def until(self, instant: Instant) -> Instant | None:
        """Return the end, if `instant` lies before it and not before the start."""
        return self.end if self.start <= instant < self.end else None

    def edge(self, instant: Instant) -> Instant:
        """Return the next of its two ends."""
        return next((end for end in (self.start, self.end) if end > instant), LATEST + 1)

    def why(self, instant: Instant) -> str | None:
        """Name the span."""
        if self.until(instant) is None:
            return None
        return f"{in_words(instant)} lies in the blackout {self.describe()}"

    def describe(self, *, beside: str = "") -> str:
        """Say in English what is excluded."""
        del beside
        start, end = to_datetime(self.start), to_datetime(self.end)
        return f"from {start:%Y-%m-%d %H:%M:%S} until {end:%Y-%m-%d %H:%M:%S} UTC"

    def to_spec(self) -> dict[str, object]:
        """Return the calendar as JSON-able data."""
        return {"type": "span", "start": self.start, "end": self.end}


def read_clock(value: object, *, what: str) -> int:
    """Return the second of the day that `22:00`, `22:00:30` or a `time` names; `24:00` is the end of the day."""
    if isinstance(value, time) and value.tzinfo is None and not value.microsecond:
        return value.hour * 3600 + value.minute * 60 + value.second
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        hour, minute, second = (int(part or 0) for part in match.groups())
        total = hour * 3600 + minute * 60 + second
        if max(minute, second) < 60 and total <= DAY:  # noqa: PLR2004 - minutes of an hour
            return total
    raise InvalidTrigger(
        f"{what} must be a time of day such as '22:00', or an aware datetime, not {shown(value)}"
    )


def _clock(second: int) -> str:
    hours, rest = divmod(second, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}" if seconds else f"{hours:02}:{minutes:02}"
