"""A hierarchical timer wheel: millions of short timers in one process, most of which are cancelled.

Time is cut into ticks. The first level has a slot for each of the next ticks; a slot of each further level covers all
of the level below it. To add and to cancel a timer takes the same time however many there are. When a slot of a further
level is reached, its timers move down; each timer moves at most once per level.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeAlias

from duetime.errors import InvalidOption, InvalidTime, WheelError
from duetime.model.time import LONGEST_DURATION, SECOND, Duration, parse_duration

P = ParamSpec("P")

_LONGEST: Final = LONGEST_DURATION / SECOND
_SHORTEST_TICK: Final = 0.001
_LONGEST_TICK: Final = 86_400
_FEWEST_SLOTS: Final = 2
_MOST_SLOTS: Final = 65_536

_Call: TypeAlias = tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]
_NOTHING: Final[dict[str, Any]] = {}

_log = logging.getLogger("duetime.timer_wheel")


class Timer:
    """A callback that waits in a wheel."""

    __slots__ = ("_call", "_lock", "slot", "tick")

    def __init__(self, call: _Call, tick: int, lock: threading.Lock) -> None:
        self._call: _Call | None = call
        self._lock = lock
        self.tick = tick
        self.slot: dict[Timer, None] = {}
        """Where the wheel keeps it."""

    @property
    def waiting(self) -> bool:
        """Whether its callback may still run."""
        return self._call is not None

    def cancel(self) -> bool:
        """Keep the callback from running; False if it has begun to run, or was cancelled before."""
        return self.take() is not None

    def take(self) -> _Call | None:
        """Return what is to be called, once; the handle refers to nothing of it any more."""
        with self._lock:
            call, self._call = self._call, None
            self.slot.pop(self, None)
        return call


class TimerWheel:
    """Runs callbacks after a delay: never early, and at most one tick late while something advances it.

    `async with wheel:` advances it from the running event loop, `with wheel:` from a thread of its own; without either,
    call `advance()`. Timers may be added and cancelled from any thread, and by callbacks.
    """

    def __init__(
        self, tick: float = 0.01, slots: int = 512, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the length of a tick in seconds, the slots of each level, and what tells the time in seconds."""
        if not _SHORTEST_TICK <= tick <= _LONGEST_TICK:
            raise InvalidOption(
                f"tick must be from {_SHORTEST_TICK} to {_LONGEST_TICK} seconds, not {tick!r}; for example 0.01"
            )
        if isinstance(slots, bool) or not isinstance(slots, int) or not _FEWEST_SLOTS <= slots <= _MOST_SLOTS:
            raise InvalidOption(
                f"slots must be a whole number from {_FEWEST_SLOTS} to {_MOST_SLOTS}, not {slots!r}"
            )
        self._length = float(tick)
        self._clock = clock
        self._time = clock()
        self._swept = self._tick_of(self._time)
        """The last tick whose timers were taken out."""
        self._levels = [_Level(1, slots)]
        self._due: deque[Timer] = deque()
        self._lock = threading.Lock()
        self._advancing = False
        self._driver: _Driver | None = None

    def __len__(self) -> int:
        """Return how many timers wait."""
        with self._lock:
            waiting = sum(sum(map(len, level.slots)) for level in self._levels)
            return waiting + sum(timer.waiting for timer in self._due)

    def schedule(
        self, delay: Duration, callback: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs
    ) -> Timer:
        """Run the callback after the delay; a delay of zero means with the next tick."""
        if not isinstance(delay, float) or not 0 <= delay <= _LONGEST:
            delay = parse_duration(delay, what="delay") / SECOND
        if not callable(callback):
            raise InvalidOption(f"callback must be a function, not {callback!r}")
        call = callback, args, kwargs or _NOTHING
        due = self._clock() + delay
        tick = math.ceil(due / self._length)
        # A quotient that was rounded down would be early.
        if tick * self._length < due:
            tick += 1
        with self._lock:
            timer = Timer(call, max(tick, self._swept + 1), self._lock)
            self._place(timer)
            if (driver := self._driver) is not None and timer.tick < driver.alarm:
                driver.alarm = timer.tick
                driver.wake()
        return timer

    def advance(self, now: float | None = None) -> int:
        """Run what is due by now on the wheel's clock, and return how many callbacks ran."""
        with self._lock:
            now = self._clock() if now is None else now
            if self._advancing:
                raise WheelError(
                    "the wheel is advancing already: a callback, or a second thread, must not advance it"
                )
            if not now >= self._time:
                raise InvalidTime(
                    f"a wheel cannot go back from {self._time} to {now}; to advance it by other times than "
                    "time.monotonic(), tell it what gives them: TimerWheel(clock=...)"
                )
            self._advancing = True
        try:
            with self._lock:
                self._sweep(until=self._tick_of(now))
                self._time = now
            return self._run_due()
        finally:
            self._advancing = False

    async def __aenter__(self) -> Self:
        """Advance it from the running event loop."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        driver = self._attach(lambda: loop.call_soon_threadsafe(woken.set))
        driver.task = loop.create_task(self._drive(driver, woken), name="duetime-timer-wheel")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop advancing it; timers that wait stay in it."""
        task = self._detach().task
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def __enter__(self) -> Self:
        """Advance it from a thread of its own."""
        woken = threading.Event()
        driver = self._attach(woken.set)
        driver.thread = threading.Thread(
            target=self._drive_in_thread, args=(driver, woken), name="duetime-timer-wheel", daemon=True
        )
        driver.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop advancing it, after the callback that runs; timers that wait stay in it."""
        driver = self._detach()
        driver.wake()
        if driver.thread is not None:
            driver.thread.join()

    def _tick_of(self, now: float) -> int:
        """Return the last tick that has begun."""
        tick = math.floor(now / self._length)
        return tick - 1 if tick * self._length > now else tick

    def _place(self, timer: Timer) -> None:
        """Put a timer into a slot of the first level that reaches far enough."""
        ahead = timer.tick - self._swept
        while ahead >= (last := self._levels[-1]).reach:
            self._levels.append(_Level(last.reach, len(last.slots)))
        for level in self._levels:
            if ahead < level.reach:
                level.put(timer)
                return

    def _sweep(self, *, until: int) -> None:
        """Take out the timers of all ticks up to this one, in their order."""
        while (tick := self._next_tick()) is not None and tick <= until:
            self._swept = tick
            for level in reversed(self._levels):
                if level.occupied and tick % level.span == 0:
                    timers = level.take(tick)
                    if level.span == 1:
                        self._due.extend(timers)
                    else:
                        for timer in timers:
                            self._place(timer)
        self._swept = until

    def _next_tick(self) -> int | None:
        """Return the next tick with something to do: timers that are due, or that move to a lower level."""
        return min((level.next_after(self._swept) for level in self._levels if level.occupied), default=None)

    def _run_due(self) -> int:
        ran = 0
        while self._due:
            if (call := self._due.popleft().take()) is not None:
                ran += 1
                _run(call)
        return ran

    def _attach(self, wake: Callable[[], object]) -> _Driver:
        with self._lock:
            if self._driver is not None:
                raise WheelError(
                    "the wheel is driven already: enter it once, in the event loop or as a thread"
                )
            self._driver = _Driver(wake)
            return self._driver

    def _detach(self) -> _Driver:
        with self._lock:
            driver, self._driver = self._driver, None
        if driver is None:
            raise WheelError("the wheel is not driven: leave it once, where it was entered")
        return driver

    def _rest(self, driver: _Driver) -> float | None:
        """Return the seconds until something is to be done; None if nothing waits."""
        with self._lock:
            tick = self._next_tick()
            driver.alarm = math.inf if tick is None else tick
            return None if tick is None else max(0.0, tick * self._length - self._clock())

    async def _drive(self, driver: _Driver, woken: asyncio.Event) -> None:
        while True:
            woken.clear()
            self.advance()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rest(driver)):
                    await woken.wait()

    def _drive_in_thread(self, driver: _Driver, woken: threading.Event) -> None:
        while self._driver is driver:
            woken.clear()
            try:
                self.advance()
            except SystemExit:
                _log.exception("a callback asked the process to exit, which a thread cannot do")
            woken.wait(self._rest(driver))


class _Level:
    """Slots that cover `span` ticks each."""

    __slots__ = ("occupied", "reach", "slots", "span")

    def __init__(self, span: int, slots: int) -> None:
        self.span = span
        self.reach = span * slots
        self.slots: list[dict[Timer, None]] = [{} for _ in range(slots)]
        self.occupied = 0
        """A bit for each slot that has, or had, timers."""

    def put(self, timer: Timer) -> None:
        index = timer.tick // self.span % len(self.slots)
        slot = timer.slot = self.slots[index]
        if not slot:
            self.occupied |= 1 << index
        slot[timer] = None

    def take(self, tick: int) -> dict[Timer, None]:
        """Empty the slot that a tick has reached."""
        index = tick // self.span % len(self.slots)
        timers, self.slots[index] = self.slots[index], {}
        self.occupied &= ~(1 << index)
        return timers

    def next_after(self, tick: int) -> int:
        """Return when the next slot with timers is reached."""
        position = tick // self.span
        index = position % len(self.slots) + 1
        if later := self.occupied >> index:
            return (position + _lowest_bit(later) + 1) * self.span
        return (position - index + 1 + len(self.slots) + _lowest_bit(self.occupied)) * self.span


class _Driver:
    """What advances a wheel, and how it is woken."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self.wake = wake
        self.alarm: float = -math.inf
        """The tick until which it sleeps; it looks again before it sleeps."""
        self.task: asyncio.Task[None] | None = None
        self.thread: threading.Thread | None = None


def _lowest_bit(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _run(call: _Call) -> None:
    """Call it; an error is logged, and hurts no other timer."""
    callback, args, kwargs = call
    try:
        result = callback(*args, **kwargs)
    except (KeyboardInterrupt, SystemExit):
        raise
    # Also what is no `Exception`: a future's CancelledError would end the driver.
    except BaseException:  # noqa: BLE001 -- logged with its traceback
        _log.exception("the callback of a timer failed: %r", callback)
    else:
        if inspect.iscoroutine(result):
            result.close()
            _log.error(
                "the callback of a timer is async, and did not run: %r; start a task in it",
                callback,
            )
