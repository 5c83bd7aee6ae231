"""The progress and the log lines of runs: kept within bounds, and written about once a second for all runs together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from typing import NamedTuple, Protocol

from duetime.errors import StoreError
from duetime.model.job import Claim
from duetime.model.reports import BoundedLog, NewLogPart, Progress
from duetime.runtime.service import DATABASE_DOWN, Service, ServiceHealth
from duetime.stores.base import Store

log = logging.getLogger("duetime.worker")


class OutputReader(Protocol):
    """Passes on the output of runs."""

    captures_logs: bool

    def notice(self, output: RunOutput) -> None:
        """Take note that there is something to read; called from any thread."""
        ...


class UnwrittenOutput(NamedTuple):
    """What is to be written."""

    progress: Progress | None = None
    logs: tuple[NewLogPart, ...] = ()


NO_OUTPUT = UnwrittenOutput()


class RunOutput:
    """Keeps the latest progress of a run, and its log, until they are written."""

    def __init__(self, claim: Claim, reader: OutputReader) -> None:
        self._token = claim.token
        self._attempt = claim.attempt
        self._reader = reader
        self._lock = threading.Lock()
        self._noticed = False
        self._closed = False
        self._progress: Progress | None = None
        self._log = BoundedLog()
        self._unwritten: list[NewLogPart] = []

    def set_progress(self, fraction: float, note: str) -> None:
        """Say how far the run is; the latest counts."""
        with self._lock:
            if self._closed:
                return
            self._progress = Progress(self._token, fraction, note)
        self.ask_to_be_read()

    def add_log(self, text: str) -> None:
        """Add a record to the log."""
        with self._lock:
            if self._closed:
                return
            self._log.add(text)
        self.ask_to_be_read()

    def ask_to_be_read(self) -> None:
        """Tell the reader, once until it reads."""
        with self._lock:
            if self._noticed:
                return
            self._noticed = True
        self._reader.notice(self)

    def read(self) -> UnwrittenOutput:
        """Return what is to be written now; it is returned again until it is `written`."""
        with self._lock:
            self._noticed = False
            # While the store is away the log keeps what there is, within its bounds.
            if self._closed or not self._unwritten:
                parts = self._log.cut()
                self._unwritten += [NewLogPart(self._token, self._attempt, *part) for part in parts]
            return UnwrittenOutput(self._progress, tuple(self._unwritten))

    def written(self, output: UnwrittenOutput) -> None:
        """Forget what was written, or what is now for others to write."""
        with self._lock:
            if self._progress is output.progress:
                self._progress = None
            self._unwritten = self._unwritten[len(output.logs) :]
            more = self._log.has_more
        if more:
            self.ask_to_be_read()

    def close(self) -> None:
        """Have the rest written; nothing is taken after it."""
        with self._lock:
            self._closed = True
        self.ask_to_be_read()

    def take_rest(self) -> UnwrittenOutput:
        """Take over what is left to write; nothing is taken after it."""
        with self._lock:
            self._closed = True
        rest = self.read()
        self.written(rest)
        return rest


_FIRST_WRITE_AFTER = 0.1
"""Seconds from the first output to its write; that of runs that end sooner is in their settlement."""
_WRITE_PAUSE = 1.0
"""Seconds between writes."""
_MAX_CHARACTERS = 1_000_000
"""About how many characters are written at once; the rest comes next time."""
_ROW_OVERHEAD = 100


class OutputWriter(Service):
    """Writes the output of runs while they run; sleeps while there is none."""

    name = "reporter"

    def __init__(self, store: Store, health: ServiceHealth, *, captures_logs: bool) -> None:
        super().__init__(store, health)
        self.captures_logs = captures_logs
        self._waiting: deque[RunOutput] = deque()
        self._asleep = True
        self._loop = asyncio.get_running_loop()

    def notice(self, output: RunOutput) -> None:
        """Take note that there is something to write; called from any thread."""
        self._waiting.append(output)
        if self._asleep:
            # The loop of a worker that was stopped without this thread may be closed.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.wakeup.set)

    async def round(self) -> float | None:
        """Write what has come since the last round, if that is long enough ago."""
        if self._asleep:
            self._asleep = not self._waiting
            return None if self._asleep else _FIRST_WRITE_AFTER
        if await self._write():
            return _WRITE_PAUSE
        self._asleep = True
        # Output that came in this moment has not woken this service.
        return 0 if self._waiting else None

    async def stop(self) -> None:
        """End, and write what is left."""
        await super().stop()
        try:
            await self._write()
        except StoreError as error:
            log.warning(
                "progress and log lines of jobs could not be stored before the worker stopped: %s", error
            )

    async def _write(self) -> bool:
        """Write what waits; return whether there was anything."""
        batch = self._collect()
        if not batch:
            return False
        try:
            await self._store.report(
                [part.progress for _, part in batch if part.progress is not None],
                [line for _, part in batch for line in part.logs],
            )
        except (*DATABASE_DOWN, asyncio.CancelledError):
            for output, _ in batch:
                output.ask_to_be_read()
            batch.clear()
            raise
        finally:
            # Also what the database refused: it must not hold up the output of others.
            for output, part in batch:
                output.written(part)
        return True

    def _collect(self) -> list[tuple[RunOutput, UnwrittenOutput]]:
        """Read what waits, but not more than is good for one write."""
        batch: list[tuple[RunOutput, UnwrittenOutput]] = []
        size = 0
        while self._waiting and size < _MAX_CHARACTERS:
            output = self._waiting.popleft()
            # The rest of a run that has ended is in its settlement.
            if (part := output.read()) != NO_OUTPUT:
                batch.append((output, part))
                size += _ROW_OVERHEAD + sum(len(line.text) for line in part.logs)
        return batch
