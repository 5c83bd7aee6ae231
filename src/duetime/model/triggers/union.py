"""Whenever one of several triggers comes."""

from __future__ import annotations

from dataclasses import dataclass, field

from duetime.model.instants import LATEST, Instant
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.compound import Compound, Several, quoted, terms_of
from duetime.model.triggers.counting import Term
from duetime.model.triggers.searching import Nothing, Search


@dataclass(frozen=True, slots=True)
class Union(Several):
    """Every occurrence of every part, each instant once."""

    _sought: tuple[Trigger, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Several.__post_init__(self)
        # What a simple part says bounds the search for the others.
        object.__setattr__(self, "_sought", tuple(sorted(self.parts, key=_is_compound)))

    def look(self, instant: Instant, search: Search) -> Instant | Nothing:
        """Return the earliest of what the parts say, if none that was searched for in vain can come before it."""
        if search.left <= 0:
            return Nothing(instant)
        until, through = search.until, LATEST
        best: Instant | None = None
        waiting = len(self._sought)
        for part in self._sought:
            # Each gets its share of the steps, and enough of them to get on.
            kept = search.left - max(search.left // waiting, 2 * part.cost)
            search.left -= kept
            found = part.seek(instant, search)
            search.left += kept
            waiting -= 1
            if isinstance(found, Nothing):
                through = min(through, found.through)
            elif best is None or found < best:
                best = found
                search.until = min(until, found)
        search.until = until
        return best if best is not None and best <= through + 1 else Nothing(through)

    def terms(self) -> list[Term]:
        """Return the terms of all parts."""
        return [term for part in self.parts for term in terms_of(part)]

    def due(self, occurrence: Instant) -> Instant:
        """Return the earliest due time among the parts that come at `occurrence`."""
        coming = (part for part in self.parts if part.comes_at(occurrence))
        return min((part.due(occurrence) for part in coming), default=occurrence)

    def describe(self) -> str:
        """Say the rule in English."""
        return "; or ".join(map(quoted, self.parts))

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        return {"type": "union", "parts": [part.to_spec() for part in self.parts]}


def _is_compound(trigger: Trigger) -> bool:
    return isinstance(trigger, Compound)
