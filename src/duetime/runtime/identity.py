"""Who this worker is: made when it starts, after any fork, and never used again."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence

from duetime.model.ids import new_token
from duetime.model.worker import WorkerId, WorkerInfo
from duetime.runtime.liveness import host_key, process_started
from duetime.version import VERSION


class Identity:
    """The worker's present id; a worker that was declared dead goes on under another."""

    def __init__(
        self,
        *,
        queues: Sequence[str],
        slots: int,
        tasks: Iterable[str] = (),
        declares: Iterable[str] = (),
        fires: bool = False,
    ) -> None:
        self._queues = tuple(queues)
        self._declares = tuple(declares)
        self._tasks = tuple(tasks)
        self._slots = slots
        self._fires = fires
        self.info = self._make()

    @property
    def worker_id(self) -> WorkerId:
        """The id to claim under."""
        return self.info.id

    def renew(self) -> WorkerInfo:
        """Take a new id."""
        self.info = self._make()
        return self.info

    def _make(self) -> WorkerInfo:
        pid = os.getpid()
        return WorkerInfo(
            id=new_token(),
            host=socket.gethostname(),
            host_key=host_key(),
            pid=pid,
            pid_started=process_started(pid),
            version=VERSION,
            queues=self._queues,
            slots=self._slots,
            tasks=self._tasks,
            declares=self._declares,
            fires=self._fires,
        )
