"""The client verbs for callers without an event loop: each one runs its async verb to the end, in a loop elsewhere."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from duetime.errors import BlockingCallInLoop
from duetime.scheduler.job_handle import BlockingHandle, JobHandle
from duetime.scheduler.jobs import Jobs, Pruning
from duetime.scheduler.queues import Queues
from duetime.scheduler.schedules import Schedules
from duetime.scheduler.task import Call
from duetime.scheduler.workers import Workers

if TYPE_CHECKING:
    from duetime.scheduler.scheduler import Scheduler

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
V = TypeVar("V")


class BlockingPortal:
    """Runs coroutines for threads without an event loop.

    They run in the loop where the scheduler is open. If it is open in none, a loop of the portal's own, in a daemon
    thread, opens it on first use and closes it when the process ends.
    """

    def __init__(
        self,
        *,
        current_loop: Callable[[], asyncio.AbstractEventLoop | None],
        open_: Callable[[], Coroutine[Any, Any, object]],
        close: Callable[[], Coroutine[Any, Any, object]],
    ) -> None:
        self._current_loop = current_loop
        self._open = open_
        self._close = close
        self._lock = threading.Lock()
        self._own: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result; raises `BlockingCallInLoop` inside a loop."""
        try:
            loop = self.reach()
        except BaseException:
            coroutine.close()
            raise
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    def close(self) -> None:
        """Close the portal's own loop, if it was used."""
        with self._lock:
            loop, self._own = self._own, None
        if loop is None or self._pid != os.getpid():
            # The thread of a loop does not survive a fork: in the child there is nothing to close.
            return
        asyncio.run_coroutine_threadsafe(self._close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        atexit.unregister(self.close)

    def reach(self) -> asyncio.AbstractEventLoop:
        """Open the scheduler if it is not open, and return its loop; raises `BlockingCallInLoop` inside one."""
        if asyncio._get_running_loop() is not None:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            text = "a .sync verb would block the running event loop; call the async verb and await it"
            raise BlockingCallInLoop(text)
        with self._lock:
            current = self._current_loop()
            if current is not None and current.is_running():
                return current
            self._own = asyncio.new_event_loop()
            self._pid = os.getpid()
            threading.Thread(target=_run_loop, args=(self._own,), name="duetime-portal", daemon=True).start()
            try:
                asyncio.run_coroutine_threadsafe(self._open(), self._own).result()
            except BaseException:
                self._own.call_soon_threadsafe(self._own.stop)
                self._own = None
                raise
            atexit.register(self.close)
            return self._own


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.closing(loop):
        loop.run_forever()


class BlockingVerbs(Generic[V]):
    """An object with async verbs, for callers without an event loop."""

    def __init__(self, verbs: V, portal: BlockingPortal) -> None:
        self._verbs = verbs
        self._portal = portal


def blocking(
    verb: Callable[Concatenate[V, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[BlockingVerbs[V], P], R]:
    """Return an async verb as a blocking one with the same parameters."""

    @functools.wraps(verb)
    def run(own: BlockingVerbs[V], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return own._portal.run(verb(own._verbs, *args, **kwargs))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    return run


def blocking_enqueue(
    verb: Callable[Concatenate[V, P], Coroutine[Any, Any, JobHandle[R]]],
) -> Callable[Concatenate[BlockingVerbs[V], P], BlockingHandle[R]]:
    """Return an async verb that enqueues a job as a blocking one."""
    run = blocking(verb)

    @functools.wraps(verb)
    def enqueue(own: BlockingVerbs[V], /, *args: P.args, **kwargs: P.kwargs) -> BlockingHandle[R]:
        return BlockingHandle(run(own, *args, **kwargs), own._portal)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    return enqueue


class BlockingJobs(BlockingVerbs[Jobs]):
    """Reads, cancels, postpones and reruns jobs."""

    get = blocking(Jobs.get)
    list = blocking(Jobs.list)
    attempts = blocking(Jobs.attempts)
    cancel = blocking(Jobs.cancel)
    cancel_many = blocking(Jobs.cancel_many)
    upcoming = blocking(Jobs.upcoming)
    explain = blocking(Jobs.explain)
    logs = blocking(Jobs.logs)
    snooze = blocking(Jobs.snooze)
    release = blocking(Jobs.release)
    rerun = blocking_enqueue(Jobs.rerun)


class BlockingSchedules(BlockingVerbs[Schedules]):
    """Reads and changes schedules."""

    list = blocking(Schedules.list)
    get = blocking(Schedules.get)
    put = blocking(Schedules.put)
    edit = blocking(Schedules.edit)
    pause = blocking(Schedules.pause)
    resume = blocking(Schedules.resume)
    delete = blocking(Schedules.delete)
    skip = blocking(Schedules.skip)
    preview = blocking(Schedules.preview)
    backfill = blocking(Schedules.backfill)
    history = blocking(Schedules.history)
    forecast = blocking(Schedules.forecast)
    explain = blocking(Schedules.explain)
    export = blocking(Schedules.export)
    import_ = blocking(Schedules.import_)
    trigger = blocking_enqueue(Schedules.trigger)


class BlockingQueues(BlockingVerbs[Queues]):
    """Pauses, resumes, limits, counts and empties queues."""

    pause = blocking(Queues.pause)
    resume = blocking(Queues.resume)
    purge = blocking(Queues.purge)
    paused = blocking(Queues.paused)
    limit = blocking(Queues.limit)
    limits = blocking(Queues.limits)
    counts = blocking(Queues.counts)
    list = blocking(Queues.list)


class BlockingWorkers(BlockingVerbs[Workers]):
    """Reads workers and tells them what to do."""

    get = blocking(Workers.get)
    list = blocking(Workers.list)
    commands = blocking(Workers.commands)
    pause = blocking(Workers.pause)
    resume = blocking(Workers.resume)
    stop = blocking(Workers.stop)
    stop_job = blocking(Workers.stop_job)
    stacks = blocking(Workers.stacks)


class BlockingPruning(BlockingVerbs[Pruning]):
    """The verb `scheduler.sync.prune`."""

    __call__ = blocking(Pruning.__call__)


class BlockingScheduler:
    """The scheduler's client verbs for callers without an event loop."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._portal = portal = scheduler.portal
        self._scheduler = scheduler
        self.jobs = BlockingJobs(scheduler.jobs, portal)
        self.schedules = BlockingSchedules(scheduler.schedules, portal)
        self.queues = BlockingQueues(scheduler.queues, portal)
        self.workers = BlockingWorkers(scheduler.workers, portal)
        self.prune = BlockingPruning(scheduler.prune, portal)

    def enqueue_many(
        self, calls: Iterable[Call[Any]], *, tx: object | None = None
    ) -> list[BlockingHandle[Any]]:
        """Store all requests or none; with `tx`, in that transaction and in this thread."""
        handles = self._scheduler.enqueue_many_blocking(calls, tx=tx)
        return [BlockingHandle(handle, self._portal) for handle in handles]

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run your coroutine in the loop where the scheduler is open, and return its result."""
        return self._portal.run(coroutine)

    def close(self) -> None:
        """Close the connection that blocking calls opened."""
        self._portal.close()
