"""What the jobs of a fleet note in one file: the cheapest way for many processes to tell one what ran."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

from benchmarks.ledger import Entry, WrongRun, now

_NOTE = struct.Struct("<qqq")
_LOOK = 0.01


class Pen:
    """Writes notes; each is one short append, which no other can come between."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, number: int, due_at: int) -> None:
        """Note that a job has started."""
        os.write(self._file, _NOTE.pack(number, due_at, now()))


class Notes:
    """Reads what was noted, and forgets it between two measures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()

    def clear(self) -> None:
        """Begin anew."""
        os.truncate(self.path, 0)

    def wait(self, expected: int, *, within: float) -> list[Entry]:
        """Return the notes when there are as many as expected; too few in time is a failure."""
        deadline = time.monotonic() + within
        while (found := self.path.stat().st_size // _NOTE.size) < expected:
            if time.monotonic() > deadline:
                raise WrongRun(f"{found} of {expected} jobs ran within {within:g} s")
            time.sleep(_LOOK)
        return [Entry(*note) for note in _NOTE.iter_unpack(self.path.read_bytes())]
