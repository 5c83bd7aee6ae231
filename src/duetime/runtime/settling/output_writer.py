"""Writes progress and log lines of runs while they run, for all of them together and about once a second."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import TYPE_CHECKING

from duetime.errors import StoreError
from duetime.runtime.running.run import NO_OUTPUT, RunOutput, UnwrittenOutput
from duetime.runtime.service import DATABASE_DOWN, HealthObserver, Service

if TYPE_CHECKING:
    from duetime.stores.base import JobStore


log = logging.getLogger("duetime.worker")

_FIRST_WRITE_AFTER = 0.1
"""Seconds from the first word to its write; runs that end sooner are told by their settlement."""
_WRITE_PAUSE = 1.0
"""Seconds between writes."""
_MAX_CHARACTERS = 1_000_000
"""About how many characters are written at once; the rest comes next time."""
_ROW_OVERHEAD = 100


class OutputWriter(Service):
    """Sleeps while nobody says anything."""

    name = "reporter"

    def __init__(self, store: JobStore, health: HealthObserver, *, captures_logs: bool) -> None:
        super().__init__(health)
        self.captures_logs = captures_logs
        self._store = store
        self._speakers: deque[RunOutput] = deque()
        self._asleep = True
        self._loop = asyncio.get_running_loop()

    def hear(self, voice: RunOutput) -> None:
        """Take note that somebody has something to say; called from any thread."""
        self._speakers.append(voice)
        if self._asleep:
            # The loop of a worker that was stopped without this thread may be closed.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.wakeup.set)

    async def round(self) -> float | None:
        """Write what was said since the last round, if that is long enough ago."""
        if self._asleep:
            self._asleep = not self._speakers
            return None if self._asleep else _FIRST_WRITE_AFTER
        if await self._write():
            return _WRITE_PAUSE
        self._asleep = True
        # Who spoke in this moment still took us to be awake.
        return 0 if self._speakers else None

    async def stop(self) -> None:
        """End, and pass on what is left."""
        await super().stop()
        try:
            await self._write()
        except StoreError as error:
            log.warning(
                "progress and log lines of jobs could not be stored before the worker stopped: %s", error
            )

    async def _write(self) -> bool:
        """Write for those who have spoken; return whether there was anything."""
        said = self._collect()
        if not said:
            return False
        try:
            await self._store.report(
                [words.progress for _, words in said if words.progress is not None],
                [part for _, words in said for part in words.logs],
            )
        except (*DATABASE_DOWN, asyncio.CancelledError):
            for voice, _ in said:
                voice.call()
            said.clear()
            raise
        finally:
            # Also what the database refused: it must not hold up what others say.
            for voice, words in said:
                voice.heard(words)
        return True

    def _collect(self) -> list[tuple[RunOutput, UnwrittenOutput]]:
        """Listen to those who have spoken, but not to more than is good for one write."""
        said: list[tuple[RunOutput, UnwrittenOutput]] = []
        size = 0
        while self._speakers and size < _MAX_CHARACTERS:
            voice = self._speakers.popleft()
            # A run that has ended has left its last words to its settlement.
            if (words := voice.words()) != NO_OUTPUT:
                said.append((voice, words))
                size += _ROW_OVERHEAD + sum(len(part.text) for part in words.logs)
        return said
