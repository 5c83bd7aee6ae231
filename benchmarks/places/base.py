"""What a place to measure on is, and what its limits are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from benchmarks.sizes import Sizes


class Place(Protocol):
    """A database that Duetime is measured on."""

    @property
    def url(self) -> str:
        """Its address."""
        ...

    def keep(self) -> None:
        """Take what is stored now for the state that every measure begins with."""
        ...

    def tidy(self) -> None:
        """Remove what was stored since."""
        ...


class Limits(Protocol):
    """What the database can do at best."""

    def inserts(self, sizes: Sizes) -> dict[str, float]:
        """Inserts per second: `single`, `bulk` and, where there can be several at once, `at_once`."""
        ...

    def drain(self, jobs: int, batch: int) -> float:
        """Jobs per second of the bare loop."""
        ...

    def round_trips(self, pings: int) -> float:
        """Milliseconds for an insert, a hint and a claim."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where one run measures."""

    empty: Place
    filled: Place
    limits: Limits
    facts: dict[str, str]
    server: int | None = None
    """The process of the server, where there is one."""
