"""Runs coroutines for callers without an event loop."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from duetime.runtime.loop_thread import LoopThread, check_no_loop, closing_on_error

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
        self._own = LoopThread("duetime-portal")

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result; raises `BlockingCallInLoop` inside a loop."""
        with closing_on_error(coroutine):
            loop = self.reach()
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    def close(self) -> None:
        """Close the portal's own loop, if it was used."""
        if self._own.running:
            self._own.run(self._close())
            self._own.close()
            atexit.unregister(self.close)

    def reach(self) -> asyncio.AbstractEventLoop:
        """Open the scheduler if it is not open, and return its loop; raises `BlockingCallInLoop` inside one."""
        check_no_loop()
        with self._lock:
            current = self._current_loop()
            if current is not None and current.is_running():
                return current
            try:
                self._own.run(self._open())
            except BaseException:
                self._own.close()
                raise
            atexit.register(self.close)
            return self._own.loop()
