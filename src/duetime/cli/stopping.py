"""Signals that stop a program: first gently, then firmly, then at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

log = logging.getLogger("duetime.cli")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LAST = 3
_KILLED_BY = 128


class StopSignals:
    """Catches SIGINT and SIGTERM while it is entered, in the main thread of a running event loop."""

    def __init__(self) -> None:
        self._count = 0
        self._first = asyncio.Event()
        self._second: Callable[[], None] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for number in _SIGNALS:
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
        if self._count >= _LAST:
            os._exit(_KILLED_BY + number)
        self._loop.call_soon_threadsafe(self._act, self._count, signal.Signals(number).name)

    def _act(self, count: int, name: str) -> None:
        if count == 1:
            log.info("%s: stopping; a second signal cancels what still runs", name)
            self._first.set()
        elif self._second is not None:
            log.info("%s again: cancelling what still runs", name)
            self._second()
