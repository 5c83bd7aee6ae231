"""A hint and a timeout in one place to wait at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Wakeup:
    """Lets one loop sleep until it is hinted or its time has come.

    Clear before looking, then wait: a hint that lands during the look is not lost.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.set: Callable[[], None] = self._event.set
        """Wakes the sleeper; the event's own method, because it is called several times for every job."""
        self._later: asyncio.TimerHandle | None = None

    def set_after(self, seconds: float) -> None:
        """Wake the sleeper after so many seconds; it is woken once, as the first of several hints says."""
        if seconds <= 0:
            self.set()
            return
        loop = asyncio.get_running_loop()
        if self._later is not None:
            if self._later.when() <= loop.time() + seconds:
                return
            self._later.cancel()
        self._later = loop.call_later(seconds, self._set_late)

    def clear(self) -> None:
        """Forget earlier hints, also those that have not woken anybody yet."""
        self._event.clear()
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _set_late(self) -> None:
        self._later = None
        self.set()

    async def wait(self, seconds: float | None) -> None:
        """Sleep until hinted, or for so many seconds; `None` waits for a hint alone."""
        if seconds is None:
            await self._event.wait()
            return
        timer = asyncio.get_running_loop().call_later(seconds, self._event.set)
        try:
            await self._event.wait()
        finally:
            timer.cancel()
