"""The catalogue: which systems are measured, at which versions, with which settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Engine = Literal["sqlite", "postgres"]
ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One scheduler or queue on one kind of database."""

    name: str
    """As it stands in tables, on the command line and in file names."""
    title: str
    engine: Engine
    adapter: str
    """The module in `benchmarks.peers.adapters`."""
    requirements: tuple[str, ...] = ()
    """Exact pins; none means the project's own environment."""
    settings: str
    """One sentence for the report."""
    notes: str = ""
    widths: tuple[int, ...] = (100,)
    """Values of its main setting that a drain is tried with; its best one counts."""
    pace: int = 1_000
    """One-off jobs a second that it surely stores; what is due later is put that much earlier."""
    in_process: bool = False
    """True where jobs can only be added in the process that runs them."""
    processes: int = 2
    """Worker processes that can share the work."""
    polls: bool = False
    """True where a shorter poll than the default one is used for everything but the idle cost."""
    ours: bool = False

    @property
    def environment(self) -> str | None:
        """The name of its own virtual environment."""
        return self.adapter if self.requirements else None


SYSTEMS: tuple[System, ...] = (
    System(
        name="duetime-sqlite",
        title="Duetime",
        engine="sqlite",
        adapter="duetime",
        settings="defaults (WAL, synchronous=FULL); drain with concurrency 100 and 1,000, the better one counts",
        widths=(100, 1_000),
        pace=10_000,
        ours=True,
    ),
    System(
        name="duetime-postgres",
        title="Duetime",
        engine="postgres",
        adapter="duetime",
        settings="defaults; drain with concurrency 100 and 1,000, the better one counts",
        widths=(100, 1_000),
        pace=10_000,
        ours=True,
    ),
)


def named(name: str) -> System:
    """Return a system of the catalogue."""
    return next(system for system in SYSTEMS if system.name == name)
