"""The child processes of a worker: started ahead, used again, replaced when they are worn."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping

from duetime.errors import ConfigError
from duetime.runtime.error_text import describe_error
from duetime.runtime.running.children.process import ChildProcess
from duetime.runtime.running.children.task_location import TaskLocation, locate_task, module_being_imported
from duetime.runtime.running.handler import Handler

log = logging.getLogger("duetime.worker")

_CLOSE_TIMEOUT = 10.0
"""Seconds for the children to end, of which each may take a part to leave by itself."""


class ChildPool:
    """Lends children; beside those that are lent, one is kept ready.

    How many are lent at once is for the worker's slots to say. A process is started only when one is lent or comes
    back, so that children that die at once are not started for ever.
    """

    def __init__(
        self, handlers: Mapping[str, Handler], *, max_jobs: int | None = None, max_memory: int | None = None
    ) -> None:
        self._handlers = handlers
        self._max_jobs = max_jobs
        self._max_memory = max_memory
        self._addresses: dict[str, TaskLocation] = {}
        self._idle: list[ChildProcess] = []
        self._lent: set[ChildProcess] = set()
        self._leaving: dict[asyncio.Task[None], ChildProcess] = {}
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """The processes that run or wait."""
        return [child.pid for child in (*self._lent, *self._idle) if child.death is None]

    def start(self) -> None:
        """Start a first child if there is a task for it; raises when a task cannot be found by one."""
        cpu = [handler for handler in self._handlers.values() if handler.options.cpu]
        if not cpu:
            return
        if sys.platform == "win32":
            text = f"cpu tasks need a POSIX system; leave out cpu=True at {cpu[0].name}, or run this worker elsewhere"
            raise ConfigError(text)
        if (module := module_being_imported()) is not None:
            text = (
                f"{module} starts a worker when a child process imports it for its tasks; "
                'start it below `if __name__ == "__main__":`'
            )
            raise ConfigError(text)
        for handler in cpu:
            self.address(handler)
        self._keep_spare()

    def address(self, handler: Handler) -> TaskLocation:
        """Return where children find a task, or raise `InvalidTask`."""
        if handler.name not in self._addresses:
            self._addresses[handler.name] = locate_task(handler)
        return self._addresses[handler.name]

    def lend(self) -> ChildProcess:
        """Return a child that is free, ready if there is one; raises `OSError` when none can be started."""
        self._idle = [child for child in self._idle if child.death is None]
        ready = [child for child in self._idle if child.ready.is_set()]
        child = ready[-1] if ready else self._idle[-1] if self._idle else self._start()
        if child in self._idle:
            self._idle.remove(child)
        self._lent.add(child)
        self._keep_spare()
        return child

    async def take_back(self, child: ChildProcess) -> None:
        """Keep a child for the next job, or replace it; one that owes its answer is killed."""
        if not child.free:
            child.kill()
            await child.ended()
        self._lent.discard(child)
        if child.death is None:
            if self._closed or self._is_worn(child):
                self._dismiss(child)
            else:
                self._idle.append(child)
        self._keep_spare()

    async def close(self) -> None:
        """End every child and wait for the end, unless the system cannot end it, as when a disk does not answer."""
        self._closed = True
        for child in self._lent:
            child.kill()
        for child in self._idle:
            self._dismiss(child)
        self._idle.clear()
        ending = self._leaving | {asyncio.create_task(child.ended()): child for child in self._lent}
        if not ending:
            return
        _, left = await asyncio.wait(ending, timeout=_CLOSE_TIMEOUT)
        for task in left:
            task.cancel()
            log.error(
                "child process %d does not end, though it was killed; it is left behind", ending[task].pid
            )

    def _is_worn(self, child: ChildProcess) -> bool:
        return (self._max_jobs is not None and child.jobs >= self._max_jobs) or (
            self._max_memory is not None and child.memory > self._max_memory
        )

    def _dismiss(self, child: ChildProcess) -> None:
        leaving = asyncio.create_task(child.leave())
        self._leaving[leaving] = child
        leaving.add_done_callback(self._leaving.pop)

    def _keep_spare(self) -> None:
        if self._idle or self._closed:
            return
        try:
            self._idle.append(self._start())
        except Exception as error:  # noqa: BLE001 - the job that needs one tells why
            log.warning("a child process cannot be started ahead: %s", describe_error(error))

    def _start(self) -> ChildProcess:
        return ChildProcess(dict.fromkeys(address.home for address in self._addresses.values()))
