"""Runs coroutines for blocking callers, in the event loop where the scheduler is open or in one of its own."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from duetime.errors import BlockingCallInLoop

T = TypeVar("T")


class BlockingPortal:
    """Runs coroutines for threads without an event loop.

    While the scheduler is open in some loop, calls are passed to that loop. Otherwise a loop of the portal's
    own, in a daemon thread, opens the scheduler on first use and closes it when the process ends.
    """

    def __init__(
        self,
        *,
        current_loop: Callable[[], asyncio.AbstractEventLoop | None],
        open_: Callable[[], Awaitable[object]],
        close: Callable[[], Awaitable[object]],
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
        return _PortalCall(coroutine, loop).result()

    def close(self) -> None:
        """Close the portal's own loop, if it was used."""
        with self._lock:
            loop, self._own = self._own, None
        if loop is None or self._pid != os.getpid():
            # The thread of a loop does not survive a fork: in the child there is nothing to close.
            return
        asyncio.run_coroutine_threadsafe(_awaited(self._close()), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        atexit.unregister(self.close)

    def reach(self) -> asyncio.AbstractEventLoop:
        """See that the scheduler is open, and return the loop it is open in; raises `BlockingCallInLoop` inside one."""
        # What is public tells by an exception that there is none, which takes longer than all the rest.
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
                asyncio.run_coroutine_threadsafe(_awaited(self._open()), self._own).result()
            except BaseException:
                self._own.call_soon_threadsafe(self._own.stop)
                self._own = None
                raise
            atexit.register(self.close)
            return self._own


class _PortalCall(Generic[T]):
    """A coroutine that runs in a loop of another thread.

    `asyncio.run_coroutine_threadsafe` does the same with two futures, which takes half as long again.
    """

    __slots__ = ("_coroutine", "_ended", "_loop", "_task")
    _task: asyncio.Task[T]

    def __init__(self, coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._ended = threading.Lock()

    def result(self) -> T:
        """Wait for the end, and return or raise what came of it."""
        self._ended.acquire()
        self._loop.call_soon_threadsafe(self._begin)
        with self._ended:
            try:
                return self._task.result()
            except asyncio.CancelledError:
                # This thread was not cancelled, and `except Exception` must see the error.
                raise concurrent.futures.CancelledError from None

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[T]) -> None:
        del task
        self._ended.release()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.closing(loop):
        loop.run_forever()


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable
