"""What trees of processes cost, read from outside of them."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from benchmarks.processes import memory, processor_seconds

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
