"""Calendars, as people write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from datetime import date, datetime, time
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger
from duetime.model.calendars.base import Calendar
from duetime.model.calendars.blackouts import Span, Window, read_clock
from duetime.model.calendars.holidays import Holidays
from duetime.model.calendars.weekdays import Weekdays, read_weekdays
from duetime.model.instants import from_datetime
from duetime.model.triggers.zones import zone


def holidays(dates: Iterable[date] | Mapping[date, str], *, tz: str | ZoneInfo | None = None) -> Holidays:
    """Return the calendar that excludes whole dates; a mapping gives each its name."""
    return Holidays.of(dates, _key(tz))


def weekdays(*days: str, tz: str | ZoneInfo | None = None) -> Weekdays:
    """Return the calendar that excludes days of the week, such as `weekdays("FRI", "SAT")` or `weekdays("MON-FRI")`."""
    return Weekdays(days=read_weekdays(days), tz=_key(tz))


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
    free = Weekdays(days=read_weekdays(weekend), tz=_key(tz))
    if isinstance(holidays, Sized) and not len(holidays):
        return free
    return free | Holidays.of(holidays, _key(tz))


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
            raise InvalidTrigger(
                "a blackout between two datetimes happens once; days= and tz= are for times of day"
            )
        return Span(start=from_datetime(start, what="start"), end=from_datetime(end, what="end"))
    first, last = read_clock(start, what="start"), read_clock(end, what="end")
    if days is None:
        return Window(start=first, end=last, tz=_key(tz))
    return Window(start=first, end=last, days=read_weekdays(days), tz=_key(tz))


def _key(tz: str | ZoneInfo | None) -> str | None:
    return None if tz is None else zone(tz).key
