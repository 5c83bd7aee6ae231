"""An event loop in a thread of its own, for those who have none, or whose own may be blocked."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from duetime.errors import BlockingCallInLoop

T = TypeVar("T")


class LoopThread:
    """A daemon thread with an event loop, started on first use and closed when the process ends, or before."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    @property
    def running(self) -> bool:
        """Whether it was started, and not closed since; in a forked child it was not."""
        return self._loop is not None and self._pid == os.getpid()

    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop."""
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=_run, args=(self._loop,), name=self._name, daemon=True).start()
                atexit.register(self.close)
            return self._loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in it to its end; raises `BlockingCallInLoop` inside another loop."""
        with closing_on_error(work):
            check_no_loop()
            loop = self.loop()
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def close(self) -> None:
        """End the thread, if it was started."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is None or self._pid != os.getpid():
            return
        asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        atexit.unregister(self.close)


_AWAIT = "a .sync verb would block the running event loop; await the async verb"


def check_no_loop(problem: str = _AWAIT) -> None:
    """Raise `BlockingCallInLoop` inside a running event loop."""
    if asyncio._get_running_loop() is not None:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        raise BlockingCallInLoop(problem)


@contextlib.contextmanager
def closing_on_error(work: Coroutine[Any, Any, Any]) -> Generator[None]:
    """Close a coroutine that will not be run because the block fails."""
    try:
        yield
    except BaseException:
        work.close()
        raise


def _run(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.closing(loop):
        loop.run_forever()
