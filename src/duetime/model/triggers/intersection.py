"""The instants at which several triggers come together."""

from __future__ import annotations

from dataclasses import dataclass, field

from duetime.model.instants import Instant
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.compound import Several, quoted, terms_of
from duetime.model.triggers.counting import MOST_TERMS, Term, Uncountable
from duetime.model.triggers.meeting import merged
from duetime.model.triggers.searching import NEVER, Nothing, Search


@dataclass(frozen=True, slots=True)
class Intersection(Several):
    """The instants that all parts have in common, to the microsecond."""

    _sought: tuple[Trigger, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Several.__post_init__(self)
        object.__setattr__(self, "_sought", merged(self.parts))

    def look(self, instant: Instant, search: Search) -> Instant | Nothing:
        """Return the first common instant, by going on from the latest that a part says."""
        if not self._sought:
            return NEVER
        first, *others = self._sought
        while True:
            earliest = first.seek(instant, search)
            if isinstance(earliest, Nothing):
                return earliest
            latest = earliest
            for part in others:
                following = part.seek(latest - 1, search)
                if isinstance(following, Nothing):
                    return following
                latest = following
            if latest == earliest:
                return latest
            instant = latest - 1
            if instant >= search.until:
                return Nothing(instant)

    def terms(self) -> list[Term]:
        """Return what terms have in common, one of each part."""
        found = terms_of(self.parts[0])
        for part in self.parts[1:]:
            others = terms_of(part)
            if len(found) * len(others) > MOST_TERMS:
                raise Uncountable
            found = [term.meet(other) for term in found for other in others]
        return found

    def due(self, occurrence: Instant) -> Instant:
        """Return the latest due time among the parts."""
        return max(part.due(occurrence) for part in self.parts)

    def describe(self) -> str:
        """Say the rule in English."""
        return "; only when also ".join(map(quoted, self.parts))

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        return {"type": "intersection", "parts": [part.to_spec() for part in self.parts]}
