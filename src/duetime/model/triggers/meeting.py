"""What intervals, and cron rules of one zone, have in common: worked out instead of searched for."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import NamedTuple

from duetime.model import durations
from duetime.model.instants import EARLIEST, LATEST, SECOND, Instant, Micros
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.cron_common import Common
from duetime.model.triggers.every import Every


class _Grid(NamedTuple):
    """Instants at equal distances, from the first to the end."""

    first: Instant
    step: Micros
    end: Instant

    def meet(self, other: _Grid) -> _Grid:
        """Return the instants on both grids; it ends before it begins if there are none."""
        shared = gcd(self.step, other.step)
        apart, uneven = divmod(other.first - self.first, shared)
        if uneven:
            return _NOWHERE
        step = self.step // shared * other.step
        tries = other.step // shared
        met = self.first + apart * pow(self.step // shared, -1, tries) % tries * self.step
        # Both have begun by then.
        begun = max(self.first, other.first)
        return _Grid(begun + (met - begun) % step, step, min(self.end, other.end))

    def trigger(self) -> Trigger | None:
        """Return the trigger of these instants, if there are any."""
        if self.first > self.end:
            return None
        if self.step > durations.LONGEST:
            return At(tuple(range(self.first, self.end + 1, self.step)))
        return Every(interval=self.step, start=self.first, end=self.end)


_NOWHERE = _Grid(LATEST, 1, EARLIEST)
# Cron rules come at no other instants.
_WHOLE_SECONDS = _Grid(EARLIEST, SECOND, LATEST)


def merged(parts: Iterable[Trigger]) -> tuple[Trigger, ...]:
    """Return fewer triggers that have the same instants in common; none if there are no such instants."""
    grids: list[_Grid] = []
    crons: dict[str, list[Cron]] = {}
    others: list[Trigger] = []
    for part in parts:
        if isinstance(part, Every) and part.start is not None:
            grids.append(_Grid(part.start, part.interval, LATEST if part.end is None else part.end))
        elif isinstance(part, (Cron, Common)):
            rules = part.rules if isinstance(part, Common) else (part,)
            crons.setdefault(rules[0].tz, []).extend(rules)
        else:
            others.append(part)
    others += [Common(tuple(rules)) if len(rules) > 1 else rules[0] for rules in crons.values()]
    if not grids:
        return tuple(others)
    common = _WHOLE_SECONDS if crons else grids[0]
    for grid in grids:
        common = common.meet(grid)
    interval = common.trigger()
    return () if interval is None else (interval, *others)
