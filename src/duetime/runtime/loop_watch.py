"""Notices from another thread that the event loop stands still, and shows what blocks it."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable

from duetime.model.instants import SECOND, Micros
from duetime.runtime.timekeeper import monotonic

log = logging.getLogger("duetime.worker")

BLOCK_LIMIT: Micros = 1 * SECOND
HANG_LIMIT: Micros = 300 * SECOND


PERIOD = 1.0
"""Seconds from one look to the next."""
QUIET_PERIOD = 10.0
"""The same while no job runs: nothing of ours can block the loop then, and nobody wants to be woken for it.

As long as it is from one heartbeat to the next, which has the thread awake anyway.
"""
_QUIET_SIGN: Micros = 30 * SECOND
"""How long ago the last sign of life may be while no job runs."""


class LoopWatch:
    """Asks the loop for a sign of life once a period."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, on_hang: Callable[[], None]) -> None:
        """Call `on_hang` once the hang limit is passed."""
        self._loop = loop
        self._on_hang = on_hang
        self._thread = threading.get_ident()
        self._asked_at: Micros | None = None
        self._asked_last: Micros = 0
        self._reported = False
        self._gave_up = False
        self.lag: Micros = 0

    def ask(self, *, quiet: bool = False) -> None:
        """Ask for a sign of life, unless one is being waited for, or no job runs and the last is not long ago."""
        now = monotonic()
        if self._asked_at is None and not (quiet and now < self._asked_last + _QUIET_SIGN):
            self._asked_last = now
            self._ask(now)

    def hanging(self) -> bool:
        """Look once; report a blocked loop with its stack, and tell whether it is past the hang limit."""
        asked_at = self._asked_at
        if asked_at is None:
            return False
        self.lag = monotonic() - asked_at
        if self.lag >= BLOCK_LIMIT and not self._reported:
            self._reported = True
            self._report()
        if self.lag >= HANG_LIMIT and not self._gave_up:
            self._gave_up = True
            self._on_hang()
        return self._gave_up

    def _ask(self, now: Micros) -> None:
        self._asked_at = now
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:
            self._asked_at = None

    def _answer(self) -> None:
        if self._reported and self._asked_at is not None:
            log.warning("the event loop runs again after %.1f s", (monotonic() - self._asked_at) / SECOND)
        self._asked_at = None
        self._reported = self._gave_up = False
        self.lag = 0

    def _report(self) -> None:
        # Underscore or not, it is the documented way to another thread's stack.
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "  (no stack)\n"
        log.error(
            "the event loop has been blocked for %.1f s: an async task must await, or be a plain function "
            "that runs in a thread. It is at:\n%s",
            self.lag / SECOND,
            stack,
        )
