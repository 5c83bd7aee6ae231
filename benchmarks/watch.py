"""Times a stretch of a measure: by the wall clock, or by what it takes of the processor."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from benchmarks.peers.costs import spent, usage

_SERVER = "DUETIME_BENCH_PROCESSOR"
"""The variable that tells this process and its children to count processor time, and names the server's process."""


@contextmanager
def counting_processor(server: int | None) -> Generator[None]:
    """Let all watches count processor time, of the measured process and of its server, if it has one."""
    os.environ[_SERVER] = "" if server is None else str(server)
    try:
        yield
    finally:
        del os.environ[_SERVER]


class Watch:
    """Runs from the moment that it is made."""

    def __init__(self) -> None:
        server = os.environ.get(_SERVER)
        self._clock: Callable[[], float] = time.perf_counter if server is None else time.process_time
        self._servers = [int(server)] if server else []
        # To look at a server takes time of this process: the own clock is read last here, and first at the end.
        self._used = usage(self._servers)
        self._began = self._clock()

    def seconds(self) -> float:
        """Return the seconds since."""
        own = self._clock() - self._began
        return own + spent(self._used, usage(self._servers))
