"""Hears from the kernel when a process of this host ends, so that nobody has to look."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from duetime.runtime.liveness import is_gone

_MOST: Final = 64
"""How many processes are watched: each takes a descriptor, in every worker of the host."""


class Process(NamedTuple):
    """A process, told by its start from a later one with its id."""

    pid: int
    started: str | None


class Neighbours:
    """The processes of other workers, each watched through a descriptor that can be read once it has ended."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._watched: dict[Process, int] = {}

    def watch(self, processes: Collection[Process]) -> bool:
        """Watch these and no others; False when the end of one of them would not be heard of."""
        wanted = {process for process in processes if process.pid != os.getpid()}
        for process in self._watched.keys() - wanted:
            self._forget(process)
        for process in wanted - self._watched.keys():
            if len(self._watched) < _MOST:
                self._add(process)
        return wanted == self._watched.keys()

    def close(self) -> None:
        """Watch nobody."""
        self.watch(())

    def _add(self, process: Process) -> None:
        # A part of Linux, and of those Pythons only that were built where the kernel's headers had it.
        if not hasattr(os, "pidfd_open"):
            return
        try:
            descriptor = os.pidfd_open(process.pid)
        except OSError:
            # It has just ended, or this kernel, or what confines us, does not allow it.
            return
        try:
            self._loop.add_reader(descriptor, self._end, process)
        except NotImplementedError:
            os.close(descriptor)
            return
        self._watched[process] = descriptor
        if is_gone(*process):
            # Its id may belong to another process by now, whose end says nothing.
            self._forget(process)

    def _end(self, process: Process) -> None:
        self._forget(process)
        self._on_end()

    def _forget(self, process: Process) -> None:
        descriptor = self._watched.pop(process)
        self._loop.remove_reader(descriptor)
        os.close(descriptor)
