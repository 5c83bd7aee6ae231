"""Time as a parameter, so that tests can drive it."""

from __future__ import annotations

import time
from typing import Protocol

from duetime.model.instants import Instant


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
