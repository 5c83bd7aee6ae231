"""Who this worker is, and whether a process of this host still lives."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import replace

from duetime.model.ids import new_token
from duetime.model.worker import WorkerId, WorkerInfo
from duetime.version import VERSION


class WorkerIdentity:
    """The worker's present id; a worker that was declared dead goes on under another."""

    def __init__(
        self,
        *,
        queues: Sequence[str],
        slots: int,
        tasks: Iterable[str] = (),
        declares: Iterable[str] = (),
        fires: bool = False,
        name: str | None = None,
        worker: WorkerId | None = None,
    ) -> None:
        """`worker`: the id to begin with, if the same worker has one in another store."""
        pid = os.getpid()
        self.info = WorkerInfo(
            id=worker or new_token(),
            host=socket.gethostname(),
            host_key=host_key(),
            pid=pid,
            pid_started=process_started(pid),
            version=VERSION,
            queues=tuple(queues),
            slots=slots,
            tasks=tuple(tasks),
            declares=tuple(declares),
            fires=fires,
            name=name,
        )

    def renew(self) -> WorkerInfo:
        """Take a new id."""
        self.info = replace(self.info, id=new_token())
        return self.info


_STATE_FIELD = 0
_START_FIELD = 19
"""Positions in /proc/<pid>/stat after the command name."""


def host_key() -> str | None:
    """Return a text that is equal for processes which see the same processes; `None` off Linux, or in doubt."""
    try:
        # Inside another pid namespace /proc may still be that of the host, where our ids belong to other processes.
        if os.readlink("/proc/self") != str(os.getpid()):
            return None
        if not (boot := boot_id()):
            return None
        # Start times are shown in the time namespace of the reader.
        return "/".join([boot, os.readlink("/proc/self/ns/pid"), *_time_namespace()])
    except OSError:
        return None


def boot_id() -> str:
    """Return what tells this start of the machine from the next one; nothing off Linux."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def process_started(pid: int) -> str | None:
    """Return when a process began, in ticks since boot; it tells a process from a later one with its id."""
    fields = _read_stat(pid)
    return None if fields is None else fields[_START_FIELD]


def is_gone(pid: int, started: str | None) -> bool:
    """Whether the process has certainly ended; in doubt it has not."""
    if pid <= 0:
        return False
    fields = _read_stat(pid)
    if fields is not None:
        return fields[_STATE_FIELD] in "ZX" or (started is not None and fields[_START_FIELD] != started)
    # Asked last, since what has ended can be taken away by its parent at any moment.
    try:
        os.kill(pid, 0)
    except OSError as error:
        # Any other error means that it exists and belongs to another user.
        return isinstance(error, ProcessLookupError)
    return False


def _time_namespace() -> list[str]:
    try:
        return [os.readlink("/proc/self/ns/time")]
    except OSError:
        return []  # Linux before 5.6 has none.


def _read_stat(pid: int) -> list[str] | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    # The command name may hold spaces and brackets; the last bracket ends it.
    return text.rpartition(")")[2].split()
