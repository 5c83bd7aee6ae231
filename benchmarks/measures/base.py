"""What a measure is, and what its figures are held to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from benchmarks.places import Limits, Place
from benchmarks.sizes import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number, and the ratio to its limit that it should reach."""

    key: str
    title: str
    unit: str
    better: Literal["more", "less"]
    limit: str | None = None
    """What the limit is; without one the value itself is held to the bounds."""
    goal: float | None = None
    """What we aim at."""
    must: float | None = None
    """What has to hold."""
    held: Literal["ratio", "value"] = "ratio"
    """What is held to the bounds where there is a limit."""
    flat: bool = True
    """Whether it may not get worse than 1.5 times with many jobs stored for later."""

    def reaches(self, ratio: float, bound: float | None) -> bool | None:
        """Whether a ratio keeps a bound; `None` when there is no bound."""
        if bound is None:
            return None
        return ratio >= bound if self.better == "more" else ratio <= bound


class Measure(Protocol):
    """One question, asked in turn of the empty and of the filled database."""

    name: str
    once: bool
    """Whether one pair is enough, and both of it may run at the same time."""

    @property
    def pairs(self) -> int | None:
        """How many pairs are enough; `None`: as many as the run makes."""
        ...

    def figures(self, store: str) -> tuple[Figure, ...]:
        """The figures this measure gives for a kind of store."""
        ...

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        """Measure the limits, by the key of the figure they belong to."""
        ...

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Measure Duetime, by the key of the figure."""
        ...
