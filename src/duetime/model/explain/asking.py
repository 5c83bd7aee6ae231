"""The moment that somebody asks about, as people write it: perhaps without a zone, and to the minute."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTime
from duetime.model.durations import MINUTE
from duetime.model.instants import SECOND, Instant, Micros, from_datetime, to_datetime
from duetime.model.triggers.zones import zone


class Window(NamedTuple):
    """A stretch of time; `until` is the first instant after it."""

    since: Instant
    until: Instant

    def has(self, instant: Instant | None) -> bool:
        """Whether an instant lies in it."""
        return instant is not None and self.since <= instant < self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was asked about, in the zone of the schedule."""

    text: str
    windows: tuple[Window, ...]
    """Two where the clock shows the time twice."""
    remark: str | None = None
    """What the clock did then, if that is not what it does on other days."""


def ask(moment: datetime, tz: str) -> Question:
    """Read a moment, in the zone where it names none; without seconds it stands for the whole minute."""
    if not isinstance(moment, datetime):
        text = f"at must be a datetime such as datetime(2030, 1, 31, 3, 0), not {type(moment).__name__}"
        raise InvalidTime(text)
    if moment.utcoffset() is not None:
        instant = from_datetime(moment, what="at")
        return Question(text=_shown(to_datetime(instant), tz), windows=(_window(instant, moment),))
    place = ZoneInfo(tz)
    first, second = (from_datetime(moment.replace(tzinfo=place, fold=fold), what="at") for fold in (0, 1))
    if first == second:
        return Question(text=_shown(to_datetime(first), tz), windows=(_window(first, moment),))
    if first < second:
        return Question(
            text=f"{moment:%Y-%m-%d %H:%M:%S} {tz}",
            windows=(_window(first, moment), _window(second, moment)),
            remark=f"{moment:%H:%M:%S} comes twice on this day in {tz}: {_utc(first)} and {_utc(second)}.",
        )
    return _in_gap(moment, first, tz)


def _in_gap(moment: datetime, instant: Instant, tz: str) -> Question:
    """Ask about the end of the gap instead, where whatever falls into it is made up for."""
    change = zone(tz).stretch_at(instant // SECOND).start * SECOND
    opening = to_datetime(change).astimezone(ZoneInfo(tz))
    before = to_datetime(change - SECOND).astimezone(ZoneInfo(tz)) + timedelta(seconds=1)
    return Question(
        text=f"{moment:%Y-%m-%d %H:%M:%S} {tz}",
        windows=(_window(change, moment),),
        remark=(
            f"{moment:%H:%M:%S} does not exist on {moment:%Y-%m-%d} in {tz}: the clock goes from {before:%H:%M:%S} to "
            f"{opening:%H:%M:%S}. What is fixed to a time in between comes at {opening:%H:%M:%S}."
        ),
    )


def _window(instant: Instant, moment: datetime) -> Window:
    return Window(instant, instant + _width(moment))


def _width(moment: datetime) -> Micros:
    if moment.microsecond:
        return 1
    return SECOND if moment.second else MINUTE


def _shown(moment: datetime, tz: str) -> str:
    there = f"{moment.astimezone(ZoneInfo(tz)):%Y-%m-%d %H:%M:%S} {tz}"
    return there if tz == "UTC" else f"{there} ({moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC)"


def _utc(instant: Instant) -> str:
    return f"{to_datetime(instant):%H:%M:%S} UTC"
