"""An append-only file of what handlers really did, so that tests need not believe the store."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

VARIABLE = "DUETIME_TEST_LEDGER"


class Entry(NamedTuple):
    """One line: something happened in a process."""

    kind: str
    """`ready` and `stopped` of a worker, `start` and `end` of a job, or a word of the handler's own."""
    job: str
    task: str
    pid: int
    at: int
    """The wall clock, in microseconds."""
    due_at: int
    attempt: int


def write(kind: str, *, job: str = "-", task: str = "-", due_at: int = 0, attempt: int = 0) -> None:
    """Append one line in one system call, so that lines of different processes never mix."""
    # Not `time.time`, which may be patched to be wrong.
    now = time.clock_gettime_ns(time.CLOCK_REALTIME) // 1000
    line = f"{kind} {job} {task} {os.getpid()} {now} {due_at} {attempt}\n"
    descriptor = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def starts_by_job(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Group the starts of jobs, those of one job in their order."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.kind == "start":
            found.setdefault(entry.job, []).append(entry)
    return found


class Ledger:
    """Reads the file as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: list[Entry] = []
        self._offset = 0

    def entries(self, kind: str | None = None, *, job: str | None = None) -> list[Entry]:
        """Return what has been written so far, in the order of the writes."""
        self._read_on()
        return [e for e in self._entries if kind in (None, e.kind) and job in (None, e.job)]

    def _read_on(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._offset)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.decode().splitlines():
            kind, job, task, *numbers = line.split(" ")
            self._entries.append(Entry(kind, job, task, *map(int, numbers)))
