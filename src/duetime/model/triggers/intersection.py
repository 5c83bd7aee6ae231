"""The instants at which several triggers come together."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.model.instants import Instant
from duetime.model.triggers.compound import Budget, Several, quoted


@dataclass(frozen=True, slots=True)
class Intersection(Several):
    """The instants that all parts have in common, to the microsecond."""

    def seek(self, instant: Instant, budget: Budget) -> Instant | None:
        """Return the first common instant, by going on from the latest that a part says."""
        first, *others = self.parts
        while (earliest := budget.ask(first, instant)) is not None:
            latest = earliest
            for part in others:
                following = budget.ask(part, latest - 1)
                if following is None:
                    return None
                latest = following
            if latest == earliest:
                return latest
            instant = latest - 1
        return None

    def due(self, occurrence: Instant) -> Instant:
        """Return the latest due time among the parts."""
        return max(part.due(occurrence) for part in self.parts)

    def describe(self) -> str:
        """Say the rule in English."""
        return "; only when also ".join(map(quoted, self.parts))

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        return {"type": "intersection", "parts": [part.to_spec() for part in self.parts]}
