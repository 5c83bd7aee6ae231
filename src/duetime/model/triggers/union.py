"""Whenever one of several triggers comes."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.model.instants import Instant
from duetime.model.triggers.compound import MOST_STEPS, Budget, Several, quoted, terms_of
from duetime.model.triggers.counting import Term


@dataclass(frozen=True, slots=True)
class Union(Several):
    """Every occurrence of every part, each instant once."""

    def seek(self, instant: Instant, budget: Budget) -> Instant | None:
        """Return the earliest of what the parts say."""
        found = [budget.ask(part, instant) for part in self.parts]
        return min((due for due in found if due is not None), default=None)

    def after(self, instant: Instant) -> Instant | None:
        """Return the earliest of what the parts say; one that is searched for in vain does not hide the others."""
        share = MOST_STEPS // len(self.parts)
        found = [Budget(instant, share).search(part, instant) for part in self.parts]
        return min((due for due in found if due is not None), default=None)

    def terms(self) -> list[Term]:
        """Return the terms of all parts."""
        return [term for part in self.parts for term in terms_of(part)]

    def due(self, occurrence: Instant) -> Instant:
        """Return the earliest due time among the parts that come at `occurrence`."""
        coming = (part for part in self.parts if part.after(occurrence - 1) == occurrence)
        return min((part.due(occurrence) for part in coming), default=occurrence)

    def describe(self) -> str:
        """Say the rule in English."""
        return "; or ".join(map(quoted, self.parts))

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        return {"type": "union", "parts": [part.to_spec() for part in self.parts]}
