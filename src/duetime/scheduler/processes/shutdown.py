"""Notices that the process is told to stop before the server that runs in it gets round to saying so."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_stop_signal(call: Callable[[], object]) -> Generator[bool]:
    """Call a function in the running loop when a signal to stop comes, in addition to what is done then anyway.

    Servers wait for open requests before they end a lifespan, so that what keeps a request open would keep them from it.
    Yields whether signals can be noticed here: only in the main thread, and where something handles them.
    """
    loop, changed = asyncio.get_running_loop(), list[Callable[[], None]]()
    if threading.current_thread() is threading.main_thread():
        changed = [undo for number in _SIGNALS if (undo := _also(number, call, loop)) is not None]
    try:
        yield bool(changed)
    finally:
        for undo in changed:
            undo()


def _also(
    number: signal.Signals, call: Callable[[], object], loop: asyncio.AbstractEventLoop
) -> Callable[[], None] | None:
    """Have a signal heeded before its present handler; `None` where there is none, so that it works as before."""
    handler = signal.getsignal(number)
    if not callable(handler):
        return None
    active = True

    def heed(signum: int, frame: FrameType | None) -> None:
        if active:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(call)
        handler(signum, frame)

    def undo() -> None:
        nonlocal active
        active = False
        # One that was put around this one stays, and leads here.
        if signal.getsignal(number) is heed:
            signal.signal(number, handler)

    signal.signal(number, heed)
    return undo
