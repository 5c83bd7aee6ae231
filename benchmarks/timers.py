"""What timers cost in one process: the wheel compared with the event loop's own; no database has a part in it."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Callable
from typing import Any, Protocol

from benchmarks.measures import Figure
from benchmarks.runner import Result, Row
from duetime import TimerWheel

NAME = "timers"

_COUNTS = (1_000, 1_000_000)
_REPEATS = 3
_TICK = 0.01
_LONGEST = 10.0
_LIMIT = "loop.call_later"


class _Cancellable(Protocol):
    def cancel(self) -> Any: ...


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose time is told, so that none passes while timers wait."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def advance(self) -> None:
        self.call_soon(self.stop)
        self.run_forever()


def measure() -> Result:
    """Add timers, cancel each second one and run the rest, on both."""
    rows = []
    for count in _COUNTS:
        wheel = min(_wheel(count) for _ in range(_REPEATS))
        loop = min(_loop(count) for _ in range(_REPEATS))
        figure = Figure(
            key=f"timers {count}",
            title=f"{count:,} timers",
            unit="us",
            better="less",
            limit=_LIMIT,
            flat=False,
        )
        rows.append(
            Row(
                store=NAME,
                figure=figure,
                value=wheel,
                limit=loop,
                ratio=wheel / loop,
                filled=wheel,
                worse=1.0,
            )
        )
    return Result(store="no database", facts={"cancelled": "half", "tick": f"{_TICK} s"}, rows=tuple(rows))


def _wheel(count: int) -> float:
    loop = _Loop()
    wheel = TimerWheel(_TICK, clock=loop.time)
    return _micros(count, loop, schedule=wheel.schedule, advance=wheel.advance)


def _loop(count: int) -> float:
    loop = _Loop()
    return _micros(count, loop, schedule=loop.call_later, advance=loop.advance)


def _micros(
    count: int, loop: _Loop, *, schedule: Callable[..., _Cancellable], advance: Callable[[], object]
) -> float:
    """Return microseconds for each timer, from the first call to the last callback."""
    rng = random.Random(1)
    ran: list[int] = []
    delays = [rng.random() * _LONGEST for _ in range(count)]
    gc.collect()
    began = time.perf_counter()
    timers = [schedule(delay, ran.append, 1) for delay in delays]
    for timer in timers[::2]:
        timer.cancel()
    while loop.now < _LONGEST + _TICK:
        loop.now += _TICK
        advance()
    took = time.perf_counter() - began
    loop.close()
    assert len(ran) == count // 2
    return took / count * 1e6
