"""How many occurrences combined triggers have, by adding what is counted and taking away what is counted twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from duetime.model.instants import LATEST, Instant
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.meeting import merged
from duetime.model.triggers.searching import Nothing

if TYPE_CHECKING:
    from duetime.model.calendars.base import Calendar

MOST_TERMS = 64
"""How many terms are added up: six parts that may all meet have 63, parts that never meet one each."""
MOST_STRETCHES = 1_000
"""How many stretches between the edges of calendars are counted, over all terms."""
FEW = 200
"""So many occurrences are rather asked about one by one, over all terms."""


class Uncountable(Exception):
    """To count would take a walk, or nearly so."""


class Term(NamedTuple):
    """The instants at which all of some simple triggers come, in a range and outside of calendars."""

    leaves: tuple[Trigger, ...]
    calendars: tuple[Calendar, ...] = ()
    after: Instant = -1
    until: Instant = LATEST

    def within(self, after: Instant, until: Instant) -> Term:
        """Return the part in `after < instant <= until`."""
        return self._replace(after=max(self.after, after), until=min(self.until, until))

    def without(self, calendar: Calendar) -> Term:
        """Return the part outside of a calendar."""
        return self._replace(calendars=(*self.calendars, calendar))

    def meet(self, other: Term) -> Term:
        """Return what both have in common."""
        leaves = merged((*self.leaves, *other.leaves)) if self.leaves and other.leaves else ()
        return (
            Term(leaves, self.calendars + other.calendars).within(self.after, self.until).within(*other[2:])
        )

    @property
    def empty(self) -> bool:
        """Whether it is plain that nothing is in it."""
        return self.until <= self.after or not self.leaves


def count(terms: Iterable[Term], after: Instant, until: Instant) -> int:
    """Return how many instants in `after < instant <= until` are in any of the terms; raise `Uncountable`."""
    signed: list[tuple[int, Term]] = []
    for term in terms:
        new = term.within(after, until)
        if new.empty:
            continue
        common = ((-sign, other.meet(new)) for sign, other in signed)
        signed += [(1, new), *((sign, both) for sign, both in common if not both.empty)]
        if len(signed) > MOST_TERMS:
            raise Uncountable
    return sum(sign * _count(term, share=len(signed)) for sign, term in signed)


def _count(term: Term, *, share: int) -> int:
    if not term.calendars and (found := _at_once(term.leaves, term.after, term.until)) is not None:
        return found
    for leaf in term.leaves:
        number = leaf.count(term.after, term.until)
        if number is not None and number <= FEW // share:
            return _ask(term, leaf)
    return _between_edges(term, most=MOST_STRETCHES // share)


def _ask(term: Term, rare: Trigger) -> int:
    """Walk a trigger that comes rarely, and ask the others and the calendars about each of its instants."""
    found, at = 0, rare.first(term.after, until=term.until)
    while not isinstance(at, Nothing) and at <= term.until:
        open_there = all(calendar.until(at) is None for calendar in term.calendars)
        found += open_there and all(leaf.comes_at(at) for leaf in term.leaves if leaf is not rare)
        at = rare.first(at, until=term.until)
    if isinstance(at, Nothing) and at.through < term.until:
        raise Uncountable
    return found


def _between_edges(term: Term, *, most: int) -> int:
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
