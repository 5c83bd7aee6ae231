from __future__ import annotations

import time

import pytest

from duetime.model.time import MILLISECOND, SECOND
from duetime.runtime.store_clock import StoreClock

AHEAD = 1_000_000 * SECOND
"""How far the store's clock is ahead of ours."""


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mono = 500 * SECOND
        self.store_offset = AHEAD
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.mono * 1000)

    def ask(self, clock: StoreClock, *, there: int, back: int) -> None:
        """Make a round trip with these delays each way."""
        sent = self.mono
        self.mono += there
        answer = self.mono + self.store_offset
        self.mono += back
        clock.observe(sent, self.mono, answer)

    @property
    def error(self) -> int:
        """The store's time minus ours, for a keeper that believes it knows."""
        return self.mono + self.store_offset


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.covers("store-clock")
@pytest.mark.parametrize(("there", "back"), [(0, 8_000), (8_000, 0), (4_000, 4_000), (1, 7_999)])
def test_our_idea_of_the_stores_time_is_never_ahead_of_it(clock: Clock, there: int, back: int) -> None:
    time = StoreClock()
    clock.ask(time, there=there, back=back)
    assert clock.error - 8_000 <= time.now() <= clock.error


def test_the_shortest_round_trip_decides(clock: Clock) -> None:
    time = StoreClock()
    clock.ask(time, there=40 * MILLISECOND, back=60 * MILLISECOND)
    clock.ask(time, there=100, back=100)
    clock.ask(time, there=30 * MILLISECOND, back=10 * MILLISECOND)
    assert clock.error - 200 <= time.now() <= clock.error


def test_a_round_trip_is_forgotten_after_a_minute(clock: Clock) -> None:
    time = StoreClock()
    clock.ask(time, there=10, back=10)
    clock.mono += 120 * SECOND
    # The store's clock drifts: slower than ours by a part in ten thousand.
    clock.store_offset -= 12 * MILLISECOND
    clock.ask(time, there=5_000, back=5_000)
    assert time.now() <= clock.error


@pytest.mark.parametrize("jump", [-3 * SECOND, 3 * SECOND])
def test_a_clock_that_was_set_is_followed_at_once(clock: Clock, jump: int) -> None:
    time = StoreClock()
    clock.ask(time, there=10, back=10)
    clock.mono += SECOND
    clock.store_offset += jump
    clock.ask(time, there=2_000, back=2_000)
    assert clock.error - 4_000 <= time.now() <= clock.error


def test_the_wait_until_an_instant_ends_at_zero(clock: Clock) -> None:
    time = StoreClock()
    clock.ask(time, there=0, back=0)
    assert time.until(clock.error + 3 * SECOND) == 3
    assert time.until(clock.error - 3 * SECOND) == 0
