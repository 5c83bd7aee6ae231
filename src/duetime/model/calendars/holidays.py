"""Dates, one by one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Self, cast

from duetime.errors import InvalidTrigger
from duetime.model.calendars.wall import WallCalendar, shown_wall
from duetime.model.shown import shown
from duetime.model.triggers.zones import DAY

MOST_DATES = 10_000

_EPOCH = date(1970, 1, 1).toordinal()
_NEVER = (date.max.toordinal() - _EPOCH) * DAY
_SHOWN = 3
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Holidays(WallCalendar):
    """Excludes whole dates, each with a name or the empty text."""

    dates: tuple[tuple[date, str], ...]
    _names: dict[int, str] = field(init=False, repr=False, compare=False)
    _days: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        WallCalendar.__post_init__(self)
        if not 1 <= len(self.dates) <= MOST_DATES:
            raise InvalidTrigger(f"holidays() takes from 1 to {MOST_DATES} dates, not {len(self.dates)}")
        for day, name in self.dates:
            if not isinstance(day, date) or isinstance(day, datetime):
                raise InvalidTrigger(f"a holiday is a date such as date(2030, 12, 25), not {shown(day)}")
            if not isinstance(name, str) or len(name) > _LONGEST_NAME:
                text = f"the name of the holiday {day} is a text of up to {_LONGEST_NAME} characters"
                raise InvalidTrigger(f"{text}, not {shown(name)}")
        dates = tuple(sorted(dict(self.dates).items()))
        object.__setattr__(self, "dates", dates)
        object.__setattr__(self, "_names", {day.toordinal() - _EPOCH: name for day, name in dates})
        object.__setattr__(self, "_days", tuple(self._names))

    @classmethod
    def of(cls, dates: Iterable[date] | Mapping[date, str], tz: str | None) -> Self:
        """Return the calendar of dates, or of dates with their names."""
        if isinstance(dates, str) or not isinstance(dates, Iterable):
            raise InvalidTrigger(f"holidays() takes dates such as [date(2030, 12, 25)], not {shown(dates)}")
        names: Mapping[date, str] = cast("Mapping[date, str]", dates) if isinstance(dates, Mapping) else {}
        named: list[tuple[date, str]] = []
        for day in dates:
            if len(named) == MOST_DATES:
                raise InvalidTrigger(f"holidays() takes at most {MOST_DATES} dates")
            named.append((day, names[day] if names else ""))
        return cls(dates=tuple(named), tz=tz)

    def excludes(self, wall: int) -> bool:
        """Tell whether a wall second lies on one of the dates."""
        return wall // DAY in self._names

    def boundary(self, wall: int) -> int:
        """Return the midnight after the dates in a row that `wall` is in, or before the next date."""
        if self.excludes(wall):
            return WallCalendar.boundary(self, wall)
        following = bisect_right(self._days, wall // DAY)
        return self._days[following] * DAY if following < len(self._days) else _NEVER

    def reason(self, wall: int) -> str | None:
        """Name the date, such as `2026-12-25 is a holiday (Christmas Day)`."""
        name = self._names.get(wall // DAY)
        if name is None:
            return None
        return f"{shown_wall(wall):%Y-%m-%d} is a holiday{f' ({name})' if name else ''}"

    def describe(self, *, beside: str = "") -> str:
        """Say in English what is excluded."""
        days = [str(day) for day, _ in self.dates]
        text = f"{len(days)} holidays" if len(days) > _SHOWN else ", ".join(days)
        return f"on {text}{self._in_zone(beside)}"

    def to_spec(self) -> dict[str, object]:
        """Return the calendar as JSON-able data."""
        return {
            "type": "holidays",
            "dates": {str(day): name for day, name in self.dates},
            **self._zone_spec(),
        }
