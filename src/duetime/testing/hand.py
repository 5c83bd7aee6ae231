"""A worker without a heartbeat that looks for work when it is told to: the real parts, driven by hand."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from duetime.model.job import JobId
from duetime.model.retry import NO_RETRIES
from duetime.model.time import SECOND, Clock, Instant, Micros
from duetime.runtime.events import Events
from duetime.runtime.options import worker_options
from duetime.runtime.running.context import current_job
from duetime.runtime.running.executor import Middleware
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.job_locks import MakeJobLock
from duetime.runtime.running.resolving import prepared
from duetime.runtime.store_clock import StoreClock
from duetime.runtime.upkeep.lease import PulseThread
from duetime.runtime.worker import Worker
from duetime.stores.base import Store

_LOOK = 0.02
"""Seconds between looks for new jobs while some run: they may wait for one another."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One call of a handler, and what it raised."""

    job_id: JobId
    error: Exception | None = None


class Hand(Worker):
    """Runs what is due to its end."""

    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
        *,
        calls: list[Ran],
        queues: Collection[str],
        clock: Clock | None,
        make_lock: MakeJobLock,
        schedules: bool = False,
        concurrency: int = 10,
        retries: bool = True,
        middleware: Sequence[Middleware] = (),
        events: Events | None = None,
    ) -> None:
        """Note in `calls` what is called; without `retries` the first failure of a task is its last."""
        # A window of nothing: what is not due by the clock of the test is left alone.
        options = worker_options(
            queues=sorted(queues), schedules=schedules, concurrency=concurrency, window=0, grace=0
        )
        noted = {name: self._noted(h, calls, retries=retries) for name, h in handlers.items()}
        super().__init__(store, noted, options, make_lock=make_lock, middleware=middleware, events=events)
        self._calls = calls
        self._clock = clock

    async def run_due(self, *, most: int) -> None:
        """Run everything that is due, and what that makes due, until nothing is; at most so many calls."""
        quiet = False
        while not quiet:
            await self._catch_up()
            if len(self._calls) > most:
                text = f"{most:,} calls were made and more is due: does a job enqueue itself without end?"
                raise AssertionError(text)
            done, brought = self._dispatcher.done, self._job_locks.brought
            if self.options.schedules:
                await self._firer.round()
            # Taken for slow, so that nothing is claimed in advance of a free slot.
            self._dispatcher.speed.duration = SECOND
            # Nobody listens for hints here, such as that a limited job has ended.
            self._fetcher.limited.ask_again()
            pause = await self._fetcher.round()
            idle = pause != 0 and not self._firer.behind
            quiet = idle and not self._dispatcher.runs and self._dispatcher.done == done
            # Nor that a lock is free.
            await self._job_locks.look()
            quiet = quiet and self._job_locks.brought == brought

    def _noted(self, handler: Handler, calls: list[Ran], *, retries: bool) -> Handler:
        """Return the handler with its calls written down, from the first of its dependencies to the last clean-up."""
        if handler.dependencies is None:
            return _noted(handler, calls, retries=retries)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await prepared(handler, self._threads).function(*args, **kwargs)

        whole = replace(handler, function=call, is_async=True, around=(), dependencies=None)
        return _noted(whole, calls, retries=retries)

    async def _catch_up(self) -> None:
        """Let jobs end, but not for long: one may wait for another that is still to be claimed."""
        if self._dispatcher.runs:
            drained = asyncio.ensure_future(self._dispatcher.drained())
            await asyncio.wait({drained}, timeout=_LOOK)
            drained.cancel()
        await self._outcomes.settler.flush()
        if self._dispatcher.runs:
            self.attend(await self._store.attend(self.id))

    def _timekeeper(self) -> StoreClock:
        return StoreClock() if self._clock is None else _ClockKeeper(self._clock)

    def _assemble_upkeep(self) -> None:
        super()._assemble_upkeep()
        self._intake = []
        self._pulse = _Still(self._context, store=self._store, listener=self, on_hang=self._hang)


class RestingWorker(Worker):
    """The worker of an application under test: it is there, and leaves all work to `Hand`."""

    async def start(self) -> None:
        """Do nothing but be able to tell how it fares."""
        self._assemble()


class _ClockKeeper(StoreClock):
    """Knows the store's time exactly, because both go by one clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def observe(self, sent: Micros, received: Micros, store_now: Instant) -> None:
        """Learn nothing."""

    def now(self) -> Instant:
        """Return the present instant."""
        return self._clock.now()


class _Still(PulseThread):
    """Registers and retires a worker, and does not beat: nobody else is there to take its jobs."""

    async def start(self) -> None:
        """Register the worker."""
        await self._register()

    async def stop(self) -> None:
        """Retire the worker."""
        await self._retire()


def _noted(handler: Handler, calls: list[Ran], *, retries: bool) -> Handler:
    """Return the handler with its calls written down."""

    @functools.wraps(handler.function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        with _Note(calls):
            return await handler.function(*args, **kwargs)

    @functools.wraps(handler.function)
    def call_sync(*args: Any, **kwargs: Any) -> Any:
        with _Note(calls):
            return handler.function(*args, **kwargs)

    function: Callable[..., Awaitable[Any] | Any] = call_async if handler.is_async else call_sync
    # In a thread, where a test sees what a task does, and not in a child process, which knows nothing of the test.
    options = replace(handler.options, cpu=False)
    if not retries:
        options = replace(options, retry=NO_RETRIES)
    return replace(handler, function=function, options=options)


class _Note:
    """Writes a call down when it begins, and what it raises."""

    def __init__(self, calls: list[Ran]) -> None:
        self._calls = calls
        self._call = Ran(current_job().id)

    def __enter__(self) -> None:
        self._place = len(self._calls)
        self._calls.append(self._call)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception):
            self._calls[self._place] = replace(self._call, error=error)
