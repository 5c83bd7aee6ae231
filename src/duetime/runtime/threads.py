"""Threads for sync handlers: daemons, so that a stuck one cannot keep the process from ending."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any


class ThreadRunner:
    """Runs functions in reusable threads, as many at once as are asked for."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0

    def submit(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Start the function in a thread now and return a future of this loop; cancelling it stops nothing."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        context = copy_context()

        def call() -> None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = context.run(function)
            except BaseException as raised:  # noqa: BLE001 - SystemExit of a handler is its failure, not ours
                error = raised
            try:
                loop.call_soon_threadsafe(_deliver, future, result, error)
            except RuntimeError:
                # The loop is closed: the worker was stopped without this thread, and nobody waits.
                return

        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._threads += 1
                threading.Thread(
                    target=self._serve, name=f"duetime-sync-{self._threads}", daemon=True
                ).start()
        self._work.put(call)
        return future

    def close(self) -> None:
        """Let threads end after what they run now."""
        with self._lock:
            for _ in range(self._threads):
                self._work.put(None)
            self._threads = 0
            self._idle = 0

    def _serve(self) -> None:
        while (call := self._work.get()) is not None:
            call()
            with self._lock:
                self._idle += 1


def _deliver(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        # A future refuses StopIteration, and a raised SystemExit would end the loop that awaits it.
        future.set_result(_Raised(error))


class _Raised:
    """An exception as a value."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


def unwrap(result: object) -> object:
    """Return the result of a submitted function, or raise what it raised."""
    if isinstance(result, _Raised):
        raise result.error
    return result
