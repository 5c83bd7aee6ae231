"""What calendars that go by the clock on the wall share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Self

from duetime.model.calendars.base import Calendar
from duetime.model.instants import SECOND, Instant
from duetime.model.triggers.zones import DAY, Zone, zone

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class WallCalendar(Calendar):
    """Excludes what the wall clock of a zone shows; without a zone, that of the trigger it is taken from."""

    tz: str | None = None
    _zone: Zone = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place = zone("UTC" if self.tz is None else self.tz)
        object.__setattr__(self, "tz", None if self.tz is None else place.key)
        object.__setattr__(self, "_zone", place)

    @abstractmethod
    def reason(self, wall: int) -> str | None:
        """Say why a wall second is excluded, or None if it is not."""

    @abstractmethod
    def excludes(self, wall: int) -> bool:
        """Tell whether a wall second is excluded."""

    def boundary(self, wall: int) -> int:
        """Return a wall second up to which all is excluded or all is open, as `wall` is: a midnight."""
        end, excluded = (wall // DAY + 1) * DAY, self.excludes(wall)
        while self.excludes(end) is excluded:
            end += DAY
        return end

    def until(self, instant: Instant) -> Instant | None:
        """Return the end of what is excluded around `instant`, at most up to the next change of the clock."""
        second = instant // SECOND
        stretch = self._zone.stretch_at(second)
        wall = second + stretch.offset
        if not self.excludes(wall):
            return None
        return min(self.boundary(wall) - stretch.offset, stretch.end) * SECOND

    def edge(self, instant: Instant) -> Instant:
        """Return an instant up to which nothing changes, at most the next change of the clock."""
        second = instant // SECOND
        stretch = self._zone.stretch_at(second)
        return min(self.boundary(second + stretch.offset) - stretch.offset, stretch.end) * SECOND

    def why(self, instant: Instant) -> str | None:
        """Say why `instant` is excluded, or None if it is not."""
        second = instant // SECOND
        return self.reason(second + self._zone.stretch_at(second).offset)

    def placed(self, tz: str) -> Self:
        """Return this calendar read in `tz`, unless it has a zone of its own."""
        return replace(self, tz=tz) if self.tz is None else self

    def _in_zone(self, beside: str) -> str:
        return "" if self.tz in (None, beside) else f" in {self.tz}"

    def _zone_spec(self) -> dict[str, object]:
        return {} if self.tz is None else {"tz": self.tz}


def shown_wall(wall: int) -> datetime:
    """Return a wall second as a datetime to be formatted."""
    return _EPOCH + timedelta(seconds=wall)
