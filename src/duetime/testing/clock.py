"""A clock for tests."""

from __future__ import annotations

from datetime import UTC, datetime

from duetime.errors import InvalidTime
from duetime.model.time import EARLIEST, LATEST, Duration, Instant, from_datetime, parse_duration

START = datetime(2024, 1, 1, tzinfo=UTC)


class FakeClock:
    """A clock that stands still until the test moves it."""

    def __init__(self, start: datetime | Instant = START) -> None:
        self._now = _instant(start)

    def now(self) -> Instant:
        """Return the present instant."""
        return self._now

    def advance(self, by: Duration) -> Instant:
        """Move forward by seconds, a `timedelta` or a text such as `"1h"`, and return the new instant."""
        return self.set(self._now + parse_duration(by, what="advance"))

    def set(self, moment: datetime | Instant) -> Instant:
        """Jump to a moment, also backwards as real clocks do, and return it."""
        self._now = _instant(moment)
        return self._now


def _instant(moment: datetime | Instant) -> Instant:
    if isinstance(moment, datetime):
        return from_datetime(moment, what="clock time")
    if isinstance(moment, bool) or not isinstance(moment, int) or not EARLIEST <= moment <= LATEST:
        text = f"clock time must be an aware datetime or microseconds since 1970, not {moment!r:.80}"
        raise InvalidTime(text)
    return moment
