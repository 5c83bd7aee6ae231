"""The store's clock as seen from here: never ahead of it."""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from duetime.model.time import SECOND, Instant, Micros

_MEMORY: Micros = 60 * SECOND


def monotonic() -> Micros:
    """Return this process's monotonic clock in microseconds."""
    return time.monotonic_ns() // 1000


def boottime() -> Micros:
    """Return a clock that also counts while the machine sleeps, where there is one."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    return monotonic()


class _Sample(NamedTuple):
    taken: Micros
    trip: Micros
    offset: Micros


class StoreClock:
    """Knows the store's time from the shortest round trip of the last minute."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=64)
        self._offset: Micros = 0

    def observe(self, sent: Micros, received: Micros, store_now: Instant) -> None:
        """Take in an answer that carried the store's clock."""
        trip = received - sent
        sample = _Sample(received, trip, store_now - (sent + trip // 2))
        if self._samples:
            best = self._samples[0]
            drift = (received - best.taken) // 1000
            if abs(sample.offset - best.offset) > (trip + best.trip) // 2 + drift:
                # One of the two clocks was set meanwhile: both offsets cannot be true.
                self._samples.clear()
        if self._samples and trip > self._samples[0].trip and received - self._samples[-1].taken < SECOND:
            return
        while self._samples and self._samples[-1].trip >= trip:
            self._samples.pop()
        self._samples.append(sample)
        while received - self._samples[0].taken >= _MEMORY:
            self._samples.popleft()
        best = self._samples[0]
        # Half the trip is how wrong the midpoint can be: subtracting it keeps us behind the store.
        self._offset = best.offset - best.trip // 2

    def now(self) -> Instant:
        """Return an instant the store's clock has certainly reached."""
        return time.monotonic_ns() // 1000 + self._offset

    def until(self, instant: Instant) -> float:
        """Return the seconds from now until an instant, never below zero."""
        return max(0, instant - self.now()) / SECOND
