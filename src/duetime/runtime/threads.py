"""Threads for sync handlers: daemons, so that a stuck one cannot keep the process from ending."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
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
        self._answers: deque[tuple[asyncio.Future[Any], object]] = deque()
        self._delivering = False
        """Whether the loop was asked to pass on the answers: once for many, since waking it costs a system call."""

    @property
    def busy(self) -> bool:
        """Whether any thread is at work."""
        with self._lock:
            return self._idle < self._threads

    def submit(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Start the function in a thread now and return a future of its result, or of what it `Raised`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        context = copy_context()

        def call() -> None:
            try:
                result: object = context.run(function)
            except BaseException as error:  # noqa: BLE001 - SystemExit of a handler is its failure, not ours
                result = Raised(error)
            self._answers.append((future, result))
            if self._delivering:
                # Whoever delivers unsets this first and looks for answers then, so that it finds this one.
                return
            self._delivering = True
            # The loop of a worker that was stopped without this thread may be closed; then nobody waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._deliver)

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
        for _ in range(self._threads):
            self._work.put(None)

    def _deliver(self) -> None:
        self._delivering = False
        while self._answers:
            future, result = self._answers.popleft()
            if not future.cancelled():
                future.set_result(result)

    def _serve(self) -> None:
        while (call := self._work.get()) is not None:
            call()
            # It has the arguments and the result, which an idle thread would keep.
            del call
            with self._lock:
                self._idle += 1


class Raised:
    """An exception as a value: a future refuses StopIteration, and SystemExit would end the loop that awaits it."""

    __slots__ = ("_error",)

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def take(self) -> BaseException:
        """Return it, once: the frames of its traceback lead to the thread's, which has this value."""
        error = self._error
        del self._error
        return error
