"""How many occurrences cron rules of one zone have in common, told without walking them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from duetime.model.instants import LATEST, SECOND, Instant
from duetime.model.triggers.cron_fields import Fields
from duetime.model.triggers.zones import Zone


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
                # However many times the gap has swallowed, together they come once, as its end does.
                swallowed = (rule.count(wall if rule.floating else stretch.seen, wall + 1) for rule in rules)
                found += all(swallowed)
                wall += 1
            wall = max(wall, stretch.seen)
        if wall < stop:
            found += common.count(wall, stop)
        start = stretch.end
    return found
