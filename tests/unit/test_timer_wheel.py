from __future__ import annotations

import asyncio
import logging
import math
import threading
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime import Timer, TimerWheel
from duetime.errors import InvalidDuration, InvalidOption, InvalidTime, WheelError

TICK = 0.1


class Times:
    """A clock that a test sets, and the wheel that goes by it."""

    def __init__(self, *, tick: float = TICK, slots: int = 32, start: float = 1_000.0) -> None:
        self.now = start
        self.wheel = TimerWheel(tick, slots, clock=lambda: self.now)
        self.fired: dict[object, float] = {}

    def schedule(self, delay: float, name: object = None) -> Timer:
        return self.wheel.schedule(delay, self.note, delay if name is None else name)

    def note(self, name: object) -> None:
        assert name not in self.fired
        self.fired[name] = self.now

    def run(self, seconds: float, *, step: float = TICK) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += step
            self.wheel.advance()

    def assert_on_time(self, delay: float, *, since: float = 1_000.0) -> None:
        due = since + delay
        assert due <= self.fired[delay] <= due + 2 * TICK + 1e-6  # a tick of the wheel, and a step of `run`


@pytest.mark.covers("wheel-rotation")
def test_no_timer_waits_for_another_rotation() -> None:
    times = Times()
    delays = [0.05 + n * 0.012_3 for n in range(200)]
    for delay in delays:
        times.schedule(delay)
    times.run(2.7)
    assert len(times.fired) == len(delays)
    for delay in delays:
        times.assert_on_time(delay)


@pytest.mark.covers("wheel-next-tick")
@pytest.mark.parametrize("delay", [0, 0.0, 0.09, timedelta(milliseconds=1)])
def test_a_delay_below_a_tick_ends_with_the_next_one(delay: Any) -> None:
    times = Times()
    times.wheel.schedule(delay, times.note, "soon")
    times.run(2 * TICK)
    assert "soon" in times.fired


@pytest.mark.covers("wheel-next-tick")
def test_a_callback_may_schedule_one_for_the_next_tick() -> None:
    times = Times()
    times.wheel.schedule(0, times.schedule, 0, "second")
    times.run(TICK)
    assert not times.fired
    times.run(2 * TICK)
    assert "second" in times.fired


@pytest.mark.covers("wheel-any-delay")
@pytest.mark.parametrize("delay", [3.1, 3.2, 3.3, 102.4, 5_000.0, 40_000.5])
def test_a_delay_may_be_longer_than_a_rotation(delay: float) -> None:
    times = Times()
    times.schedule(delay)
    times.run(delay + 1)
    times.assert_on_time(delay)


def test_a_delay_of_a_year_costs_no_walk_over_its_ticks() -> None:
    times = Times(tick=0.01, slots=512)
    times.schedule(365 * 86_400.0, "a year")
    times.now += 365 * 86_400.0 - 0.01
    assert times.wheel.advance() == 0
    times.now += 0.03
    assert times.wheel.advance() == 1


@pytest.mark.covers("wheel-raising-callback")
def test_a_callback_that_raises_is_logged_and_hurts_no_other(caplog: pytest.LogCaptureFixture) -> None:
    times = Times()
    calls: list[int] = []

    def broken() -> None:
        calls.append(1)
        raise ValueError("no such connection")

    times.schedule(0.25, "before")
    times.wheel.schedule(0.25, broken)
    times.schedule(0.25, "after")
    times.schedule(0.6, "later")
    times.run(2)
    assert calls == [1]
    assert times.fired.keys() == {"before", "after", "later"}
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.ERROR, "duetime.timer_wheel")
    assert "broken" in record.getMessage()
    assert record.exc_info is not None


def test_a_cancelled_future_in_a_callback_is_an_error_like_any_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    times = Times()

    def stopped() -> None:
        raise asyncio.CancelledError

    times.wheel.schedule(0, stopped)
    times.run(2 * TICK)
    assert "stopped" in caplog.text


def test_an_interrupt_passes_through_and_loses_no_timer() -> None:
    times = Times()

    def interrupted() -> None:
        raise KeyboardInterrupt

    times.wheel.schedule(0, interrupted)
    times.schedule(0, "next")
    times.now += 2 * TICK
    with pytest.raises(KeyboardInterrupt):
        times.wheel.advance()
    times.wheel.advance()
    assert "next" in times.fired


def test_an_async_callback_is_refused_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    times = Times()

    async def close() -> None: ...

    times.wheel.schedule(0, close)
    times.run(2 * TICK)
    assert "is async, and did not run" in caplog.text


@pytest.mark.covers("wheel-idle-clock")
def test_a_delay_counts_from_now_and_not_from_the_last_advance() -> None:
    times = Times()
    times.now += 1.0
    times.schedule(0.3)
    times.run(0.2)
    assert not times.fired
    times.run(0.3)
    times.assert_on_time(0.3, since=1_001.0)


@pytest.mark.covers("wheel-handle")
def test_a_cancelled_timer_does_not_run_and_is_forgotten() -> None:
    times = Times()
    timer, other = times.schedule(0.5, "cancelled"), times.schedule(0.5, "kept")
    assert (len(times.wheel), timer.waiting) == (2, True)
    assert timer.cancel()
    assert (len(times.wheel), timer.waiting) == (1, False)
    assert not timer.cancel()
    times.run(1)
    assert times.fired.keys() == {"kept"}
    assert (len(times.wheel), other.waiting, other.cancel()) == (0, False, False)


@pytest.mark.covers("wheel-handle")
def test_a_callback_may_cancel_one_of_the_same_tick() -> None:
    times = Times()
    victims: list[Timer] = []
    times.wheel.schedule(0.25, lambda: victims.pop().cancel())
    victims.append(times.schedule(0.25, "victim"))
    times.run(1)
    assert not times.fired


def test_timers_run_in_the_order_of_their_ticks_and_of_scheduling_within_one() -> None:
    times = Times()
    for name, delay in (("c", 7.05), ("a", 0.25), ("d", 7.05), ("b", 0.27)):
        times.schedule(delay, name)
    times.now += 60
    assert times.wheel.advance() == 4
    assert list(times.fired) == ["a", "b", "c", "d"]


@given(
    slots=st.integers(2, 9),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("schedule"), st.floats(0, 40)),
            st.tuples(st.just("cancel"), st.floats(0, 1)),
            st.tuples(st.just("advance"), st.floats(0, 25)),
        ),
        max_size=60,
    ),
)
def test_a_wheel_does_what_a_sorted_list_does(slots: int, steps: list[tuple[str, float]]) -> None:
    times = Times(slots=slots)
    waiting: list[tuple[int, int, float, Timer]] = []
    for number, (step, value) in enumerate(steps):
        if step == "schedule":
            due = times.now + value
            timer = times.schedule(value, number)
            waiting.append((math.ceil(due / TICK - 1e-9), number, due, timer))
        elif step == "cancel" and waiting:
            assert waiting.pop(int(value * (len(waiting) - 1)))[3].cancel()
        elif step == "advance":
            times.now += value
            before = len(times.fired)
            times.wheel.advance()
            fired = list(times.fired)[before:]
            ended = [one for one in sorted(waiting) if one[1] in fired]
            assert all(due <= times.now for _, _, due, _ in ended)  # never early
            waiting = [one for one in waiting if one[1] not in fired]
            assert all(due + TICK > times.now - 1e-6 for _, _, due, _ in waiting)  # at most a tick late
            ticks = [tick for number in fired for tick, key, *_ in ended if key == number]
            assert all(first <= second + 1 for first, second in pairwise(ticks))
        assert len(times.wheel) == len(waiting)


async def test_an_event_loop_drives_it() -> None:
    wheel = TimerWheel(0.002)
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    began = loop.time()
    async with wheel:
        wheel.schedule(3600, done.set)  # the driver sleeps for long, and is woken by the next one
        await asyncio.sleep(0)
        wheel.schedule(0.02, done.set)
        await done.wait()
        assert loop.time() - began >= 0.02
        with pytest.raises(WheelError, match="driven already"):
            wheel.__enter__()
    assert len(wheel) == 1


@pytest.mark.covers("wheel-handle")
async def test_a_thread_schedules_on_a_wheel_of_an_event_loop() -> None:
    wheel, done = TimerWheel(0.002), asyncio.Event()
    async with wheel:
        await asyncio.to_thread(wheel.schedule, 0.01, done.set)
        await done.wait()


@pytest.mark.covers("wheel-handle")
def test_a_thread_drives_it() -> None:
    wheel, done, threads = TimerWheel(0.002), threading.Event(), []

    def note() -> None:
        threads.append(threading.current_thread().name)
        done.set()

    with wheel:
        wheel.schedule(3600, note)
        wheel.schedule("10ms", note)
        assert done.wait(10)
    assert threads == ["duetime-timer-wheel"]


@pytest.mark.covers("wheel-handle")
def test_many_threads_lose_no_timer_of_one_that_is_driven() -> None:
    wheel, each, total = TimerWheel(0.002), 500, 2_000
    fired: list[int] = []
    done = threading.Event()

    def note(number: int) -> None:
        fired.append(number)
        if len(fired) == total:
            done.set()

    def add(first: int) -> None:
        for number in range(first, first + each):
            wheel.schedule(number % 7 / 1_000, note, number)
            wheel.schedule(0.001, threading.Event().set).cancel()

    with wheel:
        threads = [threading.Thread(target=add, args=(first,)) for first in range(0, total, each)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert done.wait(10)
    assert sorted(fired) == list(range(total))


@pytest.mark.parametrize(
    "options", [{"tick": 0}, {"tick": math.nan}, {"tick": -1}, {"slots": 1}, {"slots": True}]
)
def test_odd_sizes_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        TimerWheel(**options)


@pytest.mark.parametrize("delay", [-0.1, math.nan, math.inf, "soon", True, None, timedelta(seconds=-1)])
def test_what_is_no_delay_is_refused(delay: Any) -> None:
    times = Times()
    with pytest.raises(InvalidDuration, match="delay"):
        times.wheel.schedule(delay, times.note, "x")
    assert len(times.wheel) == 0


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(InvalidOption, match="callback must be a function"):
        TimerWheel().schedule(1, None)  # type: ignore[arg-type]


def test_time_does_not_go_back() -> None:
    times = Times()
    with pytest.raises(InvalidTime, match=r"TimerWheel\(clock="):
        times.wheel.advance(5.0)


def test_a_callback_does_not_advance_its_own_wheel(caplog: pytest.LogCaptureFixture) -> None:
    times = Times()
    times.wheel.schedule(0, times.wheel.advance)
    times.schedule(0, "other")
    times.run(2 * TICK)
    assert "WheelError" in caplog.text
    assert "other" in times.fired
