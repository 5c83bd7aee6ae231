"""What cron rules of one zone have in common, found without walking them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from duetime.model.instants import LATEST, SECOND, Instant
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron_fields import Fields
from duetime.model.triggers.searching import HORIZON, NEVER, Nothing, Search
from duetime.model.triggers.zones import Stretch, Zone

if TYPE_CHECKING:
    from duetime.model.triggers.cron import Cron


@dataclass(frozen=True, slots=True)
class Common(Trigger):
    """The instants at which cron rules of one zone come together: wall times that match all, and ends of gaps.

    A gap that swallows a time of each rule makes them all come as it ends, whichever times these are.
    """

    rules: tuple[Cron, ...]
    _place: Zone = field(init=False, repr=False, compare=False)
    _fields: Fields = field(init=False, repr=False, compare=False)
    _matches: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shared = reduce(Fields.meet, (rule.fields for rule in self.rules))
        object.__setattr__(self, "_place", self.rules[0].place)
        object.__setattr__(self, "_fields", shared)
        object.__setattr__(self, "_matches", shared.can_come())

    def seek(self, instant: Instant, search: Search) -> Instant | Nothing:
        """Return the first common instant strictly after `instant`, a step for each stretch of constant offset."""
        second, fields = instant // SECOND + 1, self._fields
        asked = match = -1
        while search.left > 0 and second * SECOND <= LATEST:
            search.left -= 1
            stretch = self._place.stretch_at(second)
            wall = second + stretch.offset
            if not fields.floating:
                if second == stretch.start and _swallowed([rule.fields for rule in self.rules], stretch):
                    return second * SECOND
                wall = max(wall, stretch.seen)
            if self._matches and not asked <= wall <= match:
                asked, match = wall, fields.first_from(wall) or -1
            if match >= wall and match - stretch.offset < stretch.end:
                found = (match - stretch.offset) * SECOND
                return found if found <= LATEST else NEVER
            second = stretch.end
            if second * SECOND > search.until:
                break
        return Nothing(second * SECOND - 1)

    def after(self, instant: Instant) -> Instant | None:
        """Return the first common instant strictly after `instant` that a bounded search finds."""
        found = self.first(instant, until=instant + HORIZON)
        return None if isinstance(found, Nothing) else found

    def count(self, after: Instant, until: Instant) -> int:
        """Return how many occurrences lie in `after < occurrence <= until`."""
        return count([rule.fields for rule in self.rules], self._place, after, until)

    def describe(self) -> str:
        """Say the rules in English."""
        return "; only when also ".join(rule.describe() for rule in self.rules)

    def to_spec(self) -> dict[str, object]:
        """Return the rules as JSON-able data."""
        return {"type": "intersection", "parts": [rule.to_spec() for rule in self.rules]}


def count(rules: Sequence[Fields], place: Zone, after: Instant, until: Instant) -> int:
    """Return how many instants in `after < instant <= until` all of the rules come at."""
    common = reduce(Fields.meet, rules)
    start, end = after // SECOND + 1, min(until, LATEST) // SECOND + 1
    found = 0
    while start < end:
        stretch = place.stretch_at(start)
        wall, stop = start + stretch.offset, min(end, stretch.end) + stretch.offset
        if not common.floating:
            if start == stretch.start and stretch.seen < wall:
                found += _swallowed(rules, stretch)
                wall += 1
            wall = max(wall, stretch.seen)
        if wall < stop:
            found += common.count(wall, stop)
        start = stretch.end
    return found


def _swallowed(rules: Sequence[Fields], stretch: Stretch) -> bool:
    """Tell whether a gap has swallowed a time of each rule: together they come once, as it ends."""
    opening = stretch.start + stretch.offset
    return stretch.seen < opening and all(
        rule.count(opening if rule.floating else stretch.seen, opening + 1) for rule in rules
    )
