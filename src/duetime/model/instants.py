"""Points in time as integers: microseconds since 1970-01-01 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from duetime.errors import InvalidTime

Instant: TypeAlias = int
Micros: TypeAlias = int

MILLISECOND: Micros = 1_000
SECOND: Micros = 1_000_000

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST: Instant = 0
_FIRST = datetime(1, 1, 2, tzinfo=UTC)
_LAST = datetime(9999, 12, 30, tzinfo=UTC)
"""A day from the ends of the calendar, so that they can be shown in any zone."""
LATEST: Instant = (datetime(9000, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def from_datetime(moment: datetime, *, what: str = "time") -> Instant:
    """Turn an aware datetime into an instant; raise `InvalidTime` for anything else."""
    if not isinstance(moment, datetime):
        text = f"{what} must be an aware datetime, not {type(moment).__name__}"
        raise InvalidTime(text)
    if moment.utcoffset() is None:
        text = (
            f"{what} {moment.isoformat()} has no time zone; "
            "pass an aware datetime such as datetime.now(UTC) or datetime(..., tzinfo=ZoneInfo('Europe/Berlin'))"
        )
        raise InvalidTime(text)
    try:
        instant = (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
    except OverflowError:
        instant = LATEST + 1
    if not EARLIEST <= instant <= LATEST:
        text = f"{what} {moment.isoformat()} is out of range; it must lie between 1970 and 9000"
        raise InvalidTime(text)
    return instant


def in_words(instant: Instant) -> str:
    """Say an instant to the second, for people."""
    return f"{to_datetime(instant):%Y-%m-%d %H:%M:%S} UTC"


def to_datetime(instant: Instant) -> datetime:
    """Turn an instant into an aware datetime in UTC; one beyond the calendar becomes its first or last moment."""
    try:
        return EPOCH + timedelta(microseconds=instant)
    except OverflowError:
        return _LAST if instant > 0 else _FIRST
