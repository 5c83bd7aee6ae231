"""A file in memory in which a worker marks every job that ran: another process can count them at any time."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from benchmarks.ledger import WrongRun

_COUNT = struct.Struct("<q")


class Tally:
    """One byte for each job, behind their number."""

    def __init__(self, path: Path, jobs: int) -> None:
        if not path.exists():
            path.write_bytes(bytes(_COUNT.size + jobs))
        self._jobs = jobs
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        # Read whole once, so that its pages do not count as memory that grows.
        self._done = bytes(self._map).count(b"\x01")

    def mark(self, number: int) -> None:
        """Note that a job ran."""
        place = _COUNT.size + number
        self._map[place] = min(2, self._map[place] + 1)
        self._done += 1
        _COUNT.pack_into(self._map, 0, self._done)

    @property
    def done(self) -> int:
        """How many runs there were."""
        count: int = _COUNT.unpack_from(self._map, 0)[0]
        return count

    def check(self) -> None:
        """Raise unless every job ran once."""
        marks = self._map[_COUNT.size :]
        if marks.count(1) != self._jobs:
            raise WrongRun(
                f"of {self._jobs:,} jobs {marks.count(0)} did not run and {marks.count(2)} ran more than once"
            )

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()
