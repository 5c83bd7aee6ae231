"""Calendars as stored data, read back with suspicion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from duetime.errors import InvalidTrigger
from duetime.model.calendars.base import Calendar
from duetime.model.calendars.blackouts import Span, Window
from duetime.model.calendars.holidays import MOST_DATES, Holidays
from duetime.model.calendars.joined import MOST_PARTS, Joined
from duetime.model.calendars.weekdays import Weekdays
from duetime.model.shown import shown


def _read_holidays(*, dates: Mapping[str, Any], tz: str | None = None) -> Holidays:
    if not isinstance(dates, Mapping) or len(dates) > MOST_DATES:
        raise InvalidTrigger(
            f"holidays are stored as up to {MOST_DATES} dates with names, not {shown(dates)}"
        )
    return Holidays(dates=tuple((_date(day), name) for day, name in dates.items()), tz=tz)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except (TypeError, ValueError):
        raise InvalidTrigger(f"a holiday is a date such as 2030-12-25, not {shown(text)}") from None


_READERS: dict[object, Callable[..., Calendar]] = {
    "holidays": _read_holidays,
    "weekdays": Weekdays,
    "window": Window,
    "span": Span,
}


def _read_joined(*, parts: list[Mapping[str, Any]]) -> Joined:
    if not isinstance(parts, list) or len(parts) > MOST_PARTS:
        raise InvalidTrigger(f"joined calendars are stored as up to {MOST_PARTS} parts, not {shown(parts)}")
    return Joined(tuple(_read(part, _READERS) for part in parts))


def from_spec(spec: Mapping[str, Any]) -> Calendar:
    """Return the calendar that `to_spec` wrote; raise `InvalidTrigger` for anything else."""
    return _read(spec, _READERS | {"joined": _read_joined})


def _read(spec: Mapping[str, Any], readers: Mapping[object, Callable[..., Calendar]]) -> Calendar:
    if not isinstance(spec, Mapping):
        raise InvalidTrigger(f"a calendar's spec is an object with a type, not {type(spec).__name__}")
    kind = spec.get("type")
    reader = readers.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise InvalidTrigger(f"unknown calendar type {shown(kind)}; known are {', '.join(map(str, readers))}")
    try:
        return reader(**{str(key): value for key, value in spec.items() if key != "type"})
    except TypeError as error:
        raise InvalidTrigger(f"a {kind!r} calendar cannot be read from its spec: {error}") from error
