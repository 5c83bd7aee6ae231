"""What a workload is, and what it works with."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from benchmarks.peers.cells import Outcome
from benchmarks.peers.costs import Usage, usage
from benchmarks.peers.databases import Databases
from benchmarks.peers.peer import Peer
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.systems import System
from benchmarks.places import Limits

WIDTH = 100
"""Jobs at once, where no better width is looked for."""
START_UP = 0.6
"""Seconds that starting a system's processes takes, for estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One figure of a workload, as it stands in tables and plots."""

    variant: str
    key: str
    title: str
    unit: str
    better: Literal["more", "less"]
    plotted: bool = True
    against: tuple[str, str, str] | None = None
    """Workload, variant and key of the figure that this one is shown as a multiple of."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One system about to be measured."""

    system: System
    databases: Databases
    sizes: Sizes

    @contextmanager
    def fresh(self) -> Iterator[Peer]:
        """Give the system an empty database with its tables in it."""
        with tempfile.TemporaryDirectory(prefix="duetime-peer-") as name:
            folder = Path(name)
            with self.databases.empty(folder) as url:
                peer = Peer(self.system, url=url, folder=folder)
                peer.prepare()
                yield peer

    def server(self) -> Usage:
        """Return what the database server has used until now."""
        return {} if self.databases.server is None else usage([self.databases.server])


class Workload(Protocol):
    """One kind of work that all systems are given."""

    @property
    def name(self) -> str:
        """As on the command line and in file names."""
        ...

    @property
    def title(self) -> str:
        """As in headings."""
        ...

    @property
    def meaning(self) -> str:
        """What is measured, in a sentence or two."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """The figures."""
        ...

    @property
    def bounds(self) -> tuple[str, ...]:
        """The variants that have a limit."""
        ...

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """Return the ways in which a system is measured."""
        ...

    def estimate(self, system: System, sizes: Sizes, variant: str) -> float:
        """Return about how many seconds that will take."""
        ...

    def run(self, bench: Bench, variant: str) -> Outcome:
        """Measure."""
        ...

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        """Measure what the engine could do at best, by variant of `bounds`, and say in the notes what that was."""
        ...
