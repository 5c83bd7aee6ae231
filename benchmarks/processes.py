"""What a process costs, read from outside of it."""

from __future__ import annotations

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
