"""Instants and lengths of time as whole microseconds, how people write them, and the clock as a parameter."""

from __future__ import annotations

import math
import re
import time
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import NoReturn, Protocol, TypeAlias

from duetime.errors import InvalidDuration, InvalidTime
from duetime.model.text import shown

Instant: TypeAlias = int
Micros: TypeAlias = int

MILLISECOND: Micros = 1_000
SECOND: Micros = 1_000_000

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST: Instant = 0
_FIRST_SHOWN = datetime(1, 1, 2, tzinfo=UTC)
_LAST_SHOWN = datetime(9999, 12, 30, tzinfo=UTC)
"""A day from the ends of the calendar, so that both can be shown in any zone."""
LATEST: Instant = (datetime(9000, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def from_datetime(moment: datetime, *, what: str = "time") -> Instant:
    """Turn an aware datetime into an instant; raise `InvalidTime` for anything else."""
    if not isinstance(moment, datetime):
        raise InvalidTime(f"{what} must be an aware datetime, not {type(moment).__name__}")
    if moment.utcoffset() is None:
        aware = (
            "an aware datetime such as datetime.now(UTC) or datetime(..., tzinfo=ZoneInfo('Europe/Berlin'))"
        )
        raise InvalidTime(f"{what} {moment.isoformat()} has no time zone; pass {aware}")
    try:
        instant = (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
    except OverflowError:
        instant = LATEST + 1
    if not EARLIEST <= instant <= LATEST:
        raise InvalidTime(f"{what} {moment.isoformat()} is out of range; it must lie between 1970 and 9000")
    return instant


def in_words(instant: Instant) -> str:
    """Say an instant to the second, for people."""
    return f"{to_datetime(instant):%Y-%m-%d %H:%M:%S} UTC"


def to_datetime(instant: Instant) -> datetime:
    """Turn an instant into an aware datetime in UTC; one beyond the calendar becomes its first or last moment."""
    try:
        return EPOCH + timedelta(microseconds=instant)
    except OverflowError:
        return _LAST_SHOWN if instant > 0 else _FIRST_SHOWN


Duration: TypeAlias = float | int | timedelta | str

MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR
WEEK: Micros = 7 * DAY
LONGEST_DURATION: Micros = 36_525 * DAY

_DURATION_EXAMPLES = "90 (seconds), timedelta(minutes=5), '15m' or '1h30m'"
_LONGEST_TEXT = 200
_DURATION_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
_SIZES: dict[str, Micros] = {
    "week": WEEK,
    "day": DAY,
    "hour": HOUR,
    "minute": MINUTE,
    "second": SECOND,
    "millisecond": MILLISECOND,
    "microsecond": 1,
}
_SHORT_UNITS = ("w", "d", "h", "m", "s", "ms", "us")
_UNIT_LIST = ", ".join(_SHORT_UNITS)
_LONG_UNITS = _SIZES | {f"{name}s": size for name, size in _SIZES.items()}
_UNITS = _LONG_UNITS | dict(zip(_SHORT_UNITS, _SIZES.values(), strict=True)) | {"min": MINUTE, "sec": SECOND}


def parse_duration(value: Duration, *, what: str) -> Micros:
    """Turn a duration into whole microseconds; raise `InvalidDuration` naming `what` for anything else."""
    if isinstance(value, str):
        micros = _parse_text(value, what)
    elif isinstance(value, timedelta):
        micros = value // timedelta(microseconds=1)
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        _refuse_duration(what, f"cannot be {shown(value)}")
    elif isinstance(value, float) and not math.isfinite(value):
        _refuse_duration(what, f"must be finite, not {value}")
    else:
        # A number that is far too long is refused before it is multiplied.
        micros = round(value * SECOND) if abs(value) <= LONGEST_DURATION else LONGEST_DURATION + 1
    if micros < 0 or (isinstance(value, (int, float)) and value < 0):
        _refuse_duration(what, f"must not be negative, not {shown(value)}")
    if micros > LONGEST_DURATION:
        _refuse_duration(what, f"must not be longer than 100 years, not {shown(value)}")
    return micros


def describe_duration(micros: Micros) -> str:
    """Say a duration in English, in a form that `parse` reads back: `1 hour 30 minutes`."""
    parts: list[str] = []
    for name, size in _SIZES.items():
        count, micros = divmod(micros, size)
        if count:
            parts.append(f"{count} {name}" if count == 1 else f"{count} {name}s")
    return " ".join(parts) or "0 seconds"


def _parse_text(text: str, what: str) -> Micros:
    if len(text) > _LONGEST_TEXT:
        _refuse_duration(what, f"is a text of {len(text)} characters")
    position, previous = 0, WEEK + 1
    total = Fraction(0)
    while match := _DURATION_PART.match(text, position):
        number, unit = match.groups()
        size = _UNITS.get(unit)
        if size is None:
            _refuse_duration(what, f"has the unknown unit {unit!r} in {text!r}; units are {_UNIT_LIST}")
        if size >= previous:
            _refuse_duration(what, f"{text!r} must name each unit once, the largest first")
        total += Fraction(number) * size
        position, previous = match.end(), size
    if position != len(text) or not text:
        _refuse_duration(what, f"cannot be {text!r}; a text is numbers with units ({_UNIT_LIST})")
    return round(total)


def _refuse_duration(what: str, problem: str) -> NoReturn:
    raise InvalidDuration(f"{what} {problem}; use for example {_DURATION_EXAMPLES}")


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> Instant:
        """Return the present instant."""
        ...


class SystemClock:
    """The host's wall clock."""

    def now(self) -> Instant:
        """Return the present instant."""
        return time.time_ns() // 1000
