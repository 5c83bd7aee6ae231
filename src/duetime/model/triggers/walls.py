"""From wall times to instants, for rules with fixed wall times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from duetime.model.instants import LATEST, SECOND, Instant
from duetime.model.triggers.zones import DAY, Zone, zone


def first_after(place: Zone, instant: Instant, first_from: Callable[[int], int | None]) -> Instant | None:
    """Return the first instant after `instant` at which the clock shows a wall second that `first_from` finds.

    As with cron: a wall time that a change of the clock swallows comes once, right after the gap; one that comes
    twice counts once, the first time.
    """
    second = instant // SECOND
    stretch = place.stretch_at(second)
    wall = first_from(max(second + 1 + stretch.offset, stretch.seen))
    if wall is None:
        return None
    # No clock is a day ahead of UTC or behind it, so that what lies before needs no look.
    stretch = place.stretch_at(max(second, wall - DAY))
    while wall - stretch.offset >= stretch.end:
        if stretch.end * SECOND > LATEST:
            return None
        stretch = place.stretch_at(stretch.end)
    found = max(wall - stretch.offset, stretch.start) * SECOND
    return found if found <= LATEST else None


def wall_at(place: Zone, instant: Instant) -> int:
    """Return the wall second that the clock shows at `instant`."""
    second = instant // SECOND
    return second + place.stretch_at(second).offset


def zone_of(tz: str | ZoneInfo | None, start: datetime | None) -> str:
    """Return the name of a zone: as given, or that of `start`, or UTC."""
    if tz is not None:
        return zone(tz).key
    info = start.tzinfo if isinstance(start, datetime) else None
    return info.key if isinstance(info, ZoneInfo) else "UTC"
