"""A search of bounded length: what it has found, or how far it has looked in vain."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.model import durations
from duetime.model.instants import LATEST, Instant, Micros

MOST_STEPS = 10_000
"""How many steps one search may take, a step for each question to a simple trigger."""
HORIZON: Micros = durations.LONGEST
"""How far ahead combined triggers are searched: a hundred years."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing comes after the instant asked about, up to and including `through`; what follows is not known."""

    through: Instant

    @property
    def proved(self) -> bool:
        """Whether nothing comes at all."""
        return self.through >= LATEST


NEVER = Nothing(LATEST)


class Search:
    """The steps that a search has left, and the last instant that is of interest."""

    __slots__ = ("left", "until")

    def __init__(self, until: Instant, left: int = MOST_STEPS) -> None:
        self.until = until
        self.left = left


class Memory:
    """The last answer of a trigger that took many steps, and the instant from which it holds.

    Both are replaced in one assignment, so that threads may share it.
    """

    __slots__ = ("answer",)

    def __init__(self) -> None:
        self.answer: tuple[Instant, Instant | Nothing] | None = None
