"""A fleet: worker processes on one store, and the file in which they note what they ran."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import children
from benchmarks.growth.crew import Crew, work
from benchmarks.growth.notes import Notes
from benchmarks.processes import processor_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Worker processes that are up."""

    url: str
    pids: tuple[int, ...]
    notes: Notes

    def client(self) -> Crew:
        """Return a client of the store."""
        return Crew(self.url, self.notes.path)

    def processor(self) -> float:
        """Return the processor seconds that all of them have used."""
        return sum(map(processor_seconds, self.pids))


@contextmanager
def fleet(url: str, *, processes: int, each: int = 1) -> Iterator[Fleet]:
    """Start worker processes, `each` with so many workers, and wait until all are up."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="duetime-fleet-"))
        notes = Notes(Path(folder) / "notes")
        started = [
            stack.enter_context(children.started(work, url=url, notes=str(notes.path), workers=each))
            for _ in range(processes)
        ]
        for child in started:
            child.wait_ready()
        yield Fleet(url=url, pids=tuple(child.pid for child in started), notes=notes)
        for child in started:
            child.finish()
