"""Runs coroutines for callers without an event loop."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from duetime.errors import BlockingCallInLoop

T = TypeVar("T")


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
            raise BlockingCallInLoop("a .sync verb would block the running event loop; await the async verb")
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
