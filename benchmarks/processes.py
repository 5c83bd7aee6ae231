"""What processes cost, read from outside of them, and what a stretch of a measure takes."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def processor_seconds(pid: int) -> float:
    """Return the processor time of all threads, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def memory(pid: int) -> float:
    """Return the process's fair share of memory in megabytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("smaps_rollup has no Pss line")


_GONE = (FileNotFoundError, ProcessLookupError)

Usage = Mapping[int, float]
"""Processor seconds by process."""


def parent(pid: int) -> int:
    """Return the process that started this one."""
    # The second field is a name, in parentheses, of any characters.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def tree(root: int) -> Iterator[int]:
    """Return a process and all that descend from it."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(*_GONE):
                children[parent(int(entry.name))].append(int(entry.name))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children[pid]


def usage(roots: Iterable[int]) -> Usage:
    """Return what each process of some trees has used until now, to the nanosecond."""
    found: dict[int, float] = {}
    for root in roots:
        for pid in tree(root):
            with contextlib.suppress(*_GONE):
                found[pid] = processor_seconds(pid)
    return found


def spent(before: Usage, after: Usage) -> float:
    """Return the seconds between two readings; of processes that ended in between, the rest is not known."""
    return sum(max(0.0, used - before.get(pid, 0.0)) for pid, used in after.items())


def held(root: int) -> float:
    """Return the memory of a tree in megabytes, shared pages shared out."""
    total = 0.0
    for pid in tree(root):
        with contextlib.suppress(*_GONE):
            total += memory(pid)
    return total


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
