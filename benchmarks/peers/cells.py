"""One cell is one measurement; its outcome is one file, so that a run can be broken off and taken up again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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
