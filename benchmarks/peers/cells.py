"""One cell is one measurement; its outcome is one file, so that a run can be broken off and taken up again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

_FACTS = "facts.json"


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Cell:
    """What is measured: one variant of one workload of one system."""

    engine: str
    system: str
    workload: str
    variant: str
    round: int = 1

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.engine}.{self.system}.{self.workload}.{self.variant}.{self.round}.json"

    def __str__(self) -> str:
        return f"{self.engine} {self.system} {self.workload} {self.variant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a cell: figures, or why there are none."""

    figures: dict[str, float] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    """How many jobs were missing, doubled or early, where any were."""
    note: str = ""
    lacks: str = ""
    """What the system has no way to do."""
    failed: str = ""
    """How it broke down."""
    seconds: float = 0.0
    """How long the measuring took."""


class Results:
    """The outcomes in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def finished(self, cell: Cell) -> bool:
        """True when the cell has an outcome; one that broke down is measured again."""
        path = self._folder / cell.file
        return path.exists() and not _read(path)[1].failed

    def save(self, cell: Cell, outcome: Outcome) -> None:
        """Write an outcome, whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        _write(self._folder / cell.file, {"cell": asdict(cell), "outcome": asdict(outcome)})

    def forget(self, cell: Cell) -> None:
        """Remove an outcome."""
        (self._folder / cell.file).unlink(missing_ok=True)

    def note(self, facts: dict[str, Any]) -> None:
        """Keep what the figures depend on, beside what earlier runs have noted."""
        self._folder.mkdir(parents=True, exist_ok=True)
        _write(self._folder / _FACTS, {**self.facts(), **facts})

    def facts(self) -> dict[str, Any]:
        """Return what was noted."""
        path = self._folder / _FACTS
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found

    def __iter__(self) -> Iterator[tuple[Cell, Outcome]]:
        for path in sorted(self._folder.glob("*.*.*.*.*.json")):
            yield _read(path)


def _write(path: Path, whole: dict[str, Any]) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    unfinished.replace(path)


def _read(path: Path) -> tuple[Cell, Outcome]:
    whole = json.loads(path.read_text(encoding="utf-8"))
    return Cell(**whole["cell"]), Outcome(**whole["outcome"])


_CLOCK = 10e-6
"""Seconds that a due time may lose on its way through a system as a float or as microseconds."""


class Start(NamedTuple):
    """One start of a job, as its handler noted it; times are seconds of the wall clock."""

    number: int
    at: float
    due: float

    @property
    def late(self) -> float:
        """Milliseconds after the due time."""
        return (self.at - self.due) * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What went wrong in a run."""

    ran: int
    missing: int
    doubled: int
    early: int

    @property
    def wrong(self) -> dict[str, int]:
        """The counts that should have been zero and are not."""
        counts = {"missing": self.missing, "doubled": self.doubled, "early": self.early}
        return {name: count for name, count in counts.items() if count}


def judge(starts: Iterable[Start], *, expected: int, whole: bool = True) -> Verdict:
    """Compare what ran with jobs 0 to `expected`; none is missing from a run that was cut short (`whole=False`)."""
    found = list(starts)
    times = Counter(start.number for start in found)
    known = sum(0 <= number < expected for number in times)
    return Verdict(
        ran=known,
        missing=expected - known if whole else 0,
        # A job that no one enqueued is as wrong as one that ran twice.
        doubled=len(found) - known,
        early=sum(start.at < start.due - _CLOCK for start in found),
    )


def lateness(starts: Iterable[Start], *, expected: int, wait: float) -> list[float]:
    """Return how many milliseconds late each job was; one that did not start counts with what was waited for it."""
    first: dict[int, float] = {}
    for start in starts:
        first.setdefault(start.number, start.late)
    return [*first.values(), *[wait * 1000] * (expected - len(first))]


def occurrences(
    starts: Iterable[Start], *, firsts: Sequence[float], period: float, window: tuple[float, float]
) -> tuple[list[Start], int]:
    """Return the starts whose occurrence lies in the window, numbered by occurrence, and how many were expected.

    A handler that is not told its due time is taken for the last occurrence before it started: a system that is
    late by more than a period thus looks less late than it is, but its missing runs are seen.
    """
    begin, end = window
    order = {key: n for n, key in enumerate(_expected(firsts, period, begin, end))}
    found: list[Start] = []
    for start in starts:
        first = firsts[start.number]
        # To the nearest: due times pass through floats and through whole microseconds.
        times = round((start.due - first) / period) if start.due else int((start.at - first) // period)
        due = first + times * period
        if (key := (start.number, times)) in order:
            found.append(Start(order[key], start.at, due))
    return found, len(order)


def _expected(firsts: Sequence[float], period: float, begin: float, end: float) -> Iterable[tuple[int, int]]:
    for number, first in enumerate(firsts):
        times = max(0, -int((first - begin) // period))
        while first + times * period < end:
            yield number, times
            times += 1
