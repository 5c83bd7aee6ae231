"""How many occurrences combined triggers have, and what several triggers have in common, without a walk."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from duetime.model.time import EARLIEST, LATEST, LONGEST_DURATION, SECOND, Instant, Micros
from duetime.model.triggers.at import At
from duetime.model.triggers.base import NoOccurrence, Trigger
from duetime.model.triggers.cron import Cron, CronIntersection
from duetime.model.triggers.every import Every

if TYPE_CHECKING:
    from duetime.model.triggers.calendars import Calendar


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
        if self.step > LONGEST_DURATION:
            return At(tuple(range(self.first, self.end + 1, self.step)))
        return Every(interval=self.step, start=self.first, end=self.end)


_NOWHERE = _Grid(LATEST, 1, EARLIEST)
# Cron rules come at no other instants.
_WHOLE_SECONDS = _Grid(EARLIEST, SECOND, LATEST)


def common_triggers(parts: Iterable[Trigger]) -> tuple[Trigger, ...]:
    """Return fewer triggers that have the same instants in common; none if there are no such instants."""
    grids: list[_Grid] = []
    crons: dict[str, list[Cron]] = {}
    others: list[Trigger] = []
    for part in parts:
        if isinstance(part, Every) and part.start is not None:
            grids.append(_Grid(part.start, part.interval, LATEST if part.end is None else part.end))
        elif isinstance(part, (Cron, CronIntersection)):
            rules = part.rules if isinstance(part, CronIntersection) else (part,)
            crons.setdefault(rules[0].tz, []).extend(rules)
        else:
            others.append(part)
    others += [CronIntersection(tuple(rules)) if len(rules) > 1 else rules[0] for rules in crons.values()]
    if not grids:
        return tuple(others)
    common = _WHOLE_SECONDS if crons else grids[0]
    for grid in grids:
        common = common.meet(grid)
    interval = common.trigger()
    return () if interval is None else (interval, *others)


MOST_TERMS = 64
"""How many terms are added up: six parts that may all meet have 63, parts that never meet one each."""
MOST_PERIODS = 1_000
"""How many stretches between the edges of calendars are counted, over all terms."""
FEW_OCCURRENCES = 200
"""So many occurrences are rather asked about one by one, over all terms."""


class Uncountable(Exception):
    """To count would take a walk, or nearly so."""


class CountTerm(NamedTuple):
    """The instants at which all of some simple triggers come, in a range and outside of calendars."""

    leaves: tuple[Trigger, ...]
    calendars: tuple[Calendar, ...] = ()
    after: Instant = -1
    until: Instant = LATEST

    def within(self, after: Instant, until: Instant) -> CountTerm:
        """Return the part in `after < instant <= until`."""
        return self._replace(after=max(self.after, after), until=min(self.until, until))

    def without(self, calendar: Calendar) -> CountTerm:
        """Return the part outside of a calendar."""
        return self._replace(calendars=(*self.calendars, calendar))

    def meet(self, other: CountTerm) -> CountTerm:
        """Return what both have in common."""
        leaves = common_triggers((*self.leaves, *other.leaves)) if self.leaves and other.leaves else ()
        return (
            CountTerm(leaves, self.calendars + other.calendars)
            .within(self.after, self.until)
            .within(*other[2:])
        )

    @property
    def empty(self) -> bool:
        """Whether it is plain that nothing is in it."""
        return self.until <= self.after or not self.leaves


def count_terms(terms: Iterable[CountTerm], after: Instant, until: Instant) -> int:
    """Return how many instants in `after < instant <= until` are in any of the terms; raise `Uncountable`."""
    signed: list[tuple[int, CountTerm]] = []
    for term in terms:
        new = term.within(after, until)
        if new.empty:
            continue
        common = ((-sign, other.meet(new)) for sign, other in signed)
        signed += [(1, new), *((sign, both) for sign, both in common if not both.empty)]
        if len(signed) > MOST_TERMS:
            raise Uncountable
    return sum(sign * _count_term(term, share=len(signed)) for sign, term in signed)


def _count_term(term: CountTerm, *, share: int) -> int:
    if not term.calendars and (found := _at_once(term.leaves, term.after, term.until)) is not None:
        return found
    for leaf in term.leaves:
        number = leaf.count(term.after, term.until)
        if number is not None and number <= FEW_OCCURRENCES // share:
            return _ask(term, leaf)
    return _between_edges(term, most=MOST_PERIODS // share)


def _ask(term: CountTerm, rare: Trigger) -> int:
    """Walk a trigger that comes rarely, and ask the others and the calendars about each of its instants."""
    found, at = 0, rare.first(term.after, until=term.until)
    while not isinstance(at, NoOccurrence) and at <= term.until:
        open_there = all(calendar.until(at) is None for calendar in term.calendars)
        found += open_there and all(leaf.comes_at(at) for leaf in term.leaves if leaf is not rare)
        at = rare.first(at, until=term.until)
    if isinstance(at, NoOccurrence) and at.through < term.until:
        raise Uncountable
    return found


def _between_edges(term: CountTerm, *, most: int) -> int:
    """Add up what comes in each stretch that the calendars leave open."""
    if not term.calendars:
        raise Uncountable
    found, at = 0, term.after + 1
    for _ in range(most):
        ends = [end for calendar in term.calendars if (end := calendar.until(at)) is not None]
        end = max(ends) if ends else min(calendar.edge(at) for calendar in term.calendars)
        if not ends:
            number = _at_once(term.leaves, at - 1, min(end - 1, term.until))
            if number is None:
                raise Uncountable
            found += number
        if end > term.until:
            return found
        at = end
    raise Uncountable


def _at_once(leaves: tuple[Trigger, ...], after: Instant, until: Instant) -> int | None:
    return leaves[0].count(after, until) if len(leaves) == 1 else None
