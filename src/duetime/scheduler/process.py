"""A process that is a worker's own: it works until signals stop it."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from duetime.model.urls import redact
from duetime.scheduler.scheduler_worker import WorkerSettings

if TYPE_CHECKING:
    from duetime.scheduler.scheduler import Scheduler

log = logging.getLogger("duetime.cli")

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SIGNALS_TO_EXIT_AT_ONCE = 3
_EXIT_CODE_OF_SIGNAL = 128
_UNFINISHED = 1
"""The exit code of a process with jobs that would not end."""


def run_until_stopped(scheduler: Scheduler, settings: WorkerSettings) -> None:
    """Work until SIGINT or SIGTERM; raises what made the worker give up, such as `StoreLost`.

    A second signal cancels what still runs, a third one leaves everything as it is. Jobs that do not end would keep
    the process up, so it ends without them, and another worker takes them over.
    """
    if not scheduler.tasks:
        log.warning("this scheduler has no tasks; import the modules that define them where it is made")
    settings = {"dedicated": True, **settings}
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        if unfinished := runner.run(_work(scheduler, settings)):
            log.error("%d job(s) did not end; this process ends without them", unfinished)
            logging.shutdown()
            os._exit(_UNFINISHED)


async def _work(scheduler: Scheduler, settings: WorkerSettings) -> int:
    """Run a worker until it is stopped and return how many of its jobs would not end."""
    with StopSignals() as signals:
        async with scheduler.worker(**settings) as running:
            log.info(
                "working on %s: %s; stop with Ctrl-C or SIGTERM", redact(scheduler.url), _doing(settings)
            )
            signals.on_second(running.hurry)
            await _first_of(signals.first(), running.asked_to_stop())
    if running.lost is not None:
        raise running.lost
    return running.stats().running


def _doing(settings: WorkerSettings) -> str:
    if not settings.get("jobs", True):
        return "firing schedules and running no jobs"
    return f"running jobs and {'firing schedules' if settings.get('schedules', True) else 'leaving schedules to others'}"


async def _first_of(*events: Coroutine[Any, Any, None]) -> None:
    """Wait for the first of these."""
    waiting = [asyncio.ensure_future(event) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for waiter in waiting:
        waiter.cancel()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event loop where it is installed."""
    if importlib.util.find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    return factory


class StopSignals:
    """Catches SIGINT and SIGTERM while it is entered, in the main thread of a running event loop."""

    def __init__(self) -> None:
        self._count = 0
        self._first = asyncio.Event()
        self._second: Callable[[], None] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            # Not loop.add_signal_handler, which Windows lacks and which a blocked loop would never call.
            self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    async def first(self) -> None:
        """Wait for the first signal."""
        await self._first.wait()

    def on_second(self, act: Callable[[], None]) -> None:
        """Say what to do when a second signal comes."""
        self._second = act

    def _caught(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._count += 1
        if self._count >= _SIGNALS_TO_EXIT_AT_ONCE:
            os._exit(_EXIT_CODE_OF_SIGNAL + number)
        self._loop.call_soon_threadsafe(self._act, self._count, signal.Signals(number).name)

    def _act(self, count: int, name: str) -> None:
        if count == 1:
            log.info("%s: stopping; a second signal cancels what still runs", name)
            self._first.set()
        elif self._second is not None:
            log.info("%s again: cancelling what still runs", name)
            self._second()
