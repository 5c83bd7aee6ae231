"""Looks ahead: rules that come rarely are walked, the others counted, in a bounded number of steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from duetime.model.durations import HOUR, MINUTE
from duetime.model.instants import Instant, Micros
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.searching import Nothing

STEPS = 500_000
"""How many occurrences are walked in all."""
PIECES = 500_000
"""How many stretches are counted in all; the more rules are counted, the longer each stretch."""
LEAST_WALK = 100
"""How far a rule is walked in any case that cannot be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A schedule, as far as its load is concerned."""

    name: str
    trigger: Trigger
    same: str
    """Equal for schedules whose jobs fall due at the same instants: the trigger's spec."""
    since: Instant
    """Nothing comes at or before it."""
    most: int | None = None
    """How many jobs it may still make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch in which something comes so often that it was only counted."""

    after: Instant
    until: Instant
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Schedules whose jobs fall due at the same instants, and these instants or, where there are many, their number."""

    names: tuple[str, ...]
    trigger: Trigger
    due: tuple[Instant, ...] = ()
    pieces: tuple[Piece, ...] = ()
    cut: bool = False
    """Whether there is more than could be looked at."""
    jittered: bool = False

    @property
    def comes(self) -> int:
        """How often each of them comes."""
        return len(self.due) + sum(piece.count for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What comes after `start`, up to and with `end`."""

    start: Instant
    end: Instant
    groups: tuple[Group, ...]
    minutes: tuple[float, ...]
    """How many jobs fall due in each minute, from the one that `start` is in."""

    @property
    def jobs(self) -> int:
        """How many jobs fall due in all."""
        return sum(group.comes * len(group.names) for group in self.groups)

    @property
    def cut(self) -> bool:
        """Whether there is more than was counted."""
        return any(group.cut for group in self.groups)

    @property
    def first_minute(self) -> Instant:
        """When the first of the minutes begins."""
        return self.start // MINUTE * MINUTE


class _Rule(NamedTuple):
    """A trigger to look at, once for all schedules that share it."""

    names: tuple[str, ...]
    trigger: Trigger
    after: Instant
    most: int | None


def survey(plans: Iterable[Plan], *, start: Instant, length: Micros) -> Survey:
    """Look at all schedules for a length of time."""
    end = start + length
    known: list[tuple[int, _Rule]] = []
    unknown: list[_Rule] = []
    for rule in _alike(plans, start):
        count = rule.trigger.count(rule.after, end)
        if count is None:
            unknown.append(rule)
        else:
            known.append((count if rule.most is None else min(count, rule.most), rule))
    groups = _look(known, end)
    left = STEPS - sum(len(group.due) for group in groups)
    share = max(LEAST_WALK, left // len(unknown)) if unknown else 0
    groups += [_walk(rule, end, at_most=share) for rule in unknown]
    return Survey(start=start, end=end, groups=tuple(groups), minutes=_minutes(groups, start, end))


def _alike(plans: Iterable[Plan], start: Instant) -> list[_Rule]:
    found: dict[tuple[str, Instant, int | None], list[Plan]] = {}
    for plan in plans:
        found.setdefault((plan.same, max(start, plan.since), plan.most), []).append(plan)
    return [
        _Rule(tuple(sorted(plan.name for plan in alike)), alike[0].trigger, after, most)
        for (_, after, most), alike in found.items()
    ]


def _look(known: list[tuple[int, _Rule]], end: Instant) -> list[Group]:
    """Walk the rare ones, as many as the steps allow, and count the rest by stretches."""
    known.sort(key=lambda counted: counted[0])
    steps, walked = 0, 0
    while walked < len(known) and steps + known[walked][0] <= STEPS:
        steps += known[walked][0]
        walked += 1
    groups = [_walk(rule, end, at_most=count) for count, rule in known[:walked]]
    each = PIECES // max(1, len(known) - walked)
    return groups + [_counted(rule, end, total=count, pieces=each) for count, rule in known[walked:]]


def _walk(rule: _Rule, end: Instant, *, at_most: int) -> Group:
    trigger, due, jittered = rule.trigger, list[Instant](), False
    most = at_most if rule.most is None else min(at_most, rule.most)
    occurrence = trigger.first(rule.after, until=end)
    while not isinstance(occurrence, Nothing) and occurrence <= end and len(due) < most:
        due.append(trigger.due(occurrence))
        jittered = jittered or due[-1] != occurrence
        occurrence = trigger.first(occurrence, until=end)
    looked = occurrence.through if isinstance(occurrence, Nothing) else occurrence - 1
    more = looked < end and len(due) != rule.most
    return Group(names=rule.names, trigger=trigger, due=tuple(due), cut=more, jittered=jittered)


def _counted(rule: _Rule, end: Instant, *, total: int, pieces: int) -> Group:
    """Count a rule hour by hour, or by longer stretches when so many of them would be too many."""
    length = max(HOUR, -(-(end - rule.after) // max(1, pieces)))
    found: list[Piece] = []
    after, left = rule.after, total
    while after < end and left:
        # Stretches end right before the hour, as far as they are that short: what comes on it belongs to the next.
        until = min(end, ((after + 1) // length + 1) * length - 1)
        count = min(left, rule.trigger.count(after, until) or 0)
        if count:
            found.append(Piece(after=after, until=until, count=count))
        after, left = until, left - count
    return Group(names=rule.names, trigger=rule.trigger, pieces=tuple(found))


def _minutes(groups: Iterable[Group], start: Instant, end: Instant) -> tuple[float, ...]:
    first = start // MINUTE
    minutes = [0.0] * (end // MINUTE - first + 1)
    counted: Counter[tuple[Instant, Instant]] = Counter()
    for group in groups:
        weight = len(group.names)
        for due in group.due:
            # A jitter may carry what comes last past the end.
            if due <= end:
                minutes[due // MINUTE - first] += weight
        for piece in group.pieces:
            counted[piece.after, piece.until] += piece.count * weight
    for (after, until), jobs in counted.items():
        covered = range((after + 1) // MINUTE, until // MINUTE + 1)
        for minute in covered:
            minutes[minute - first] += jobs / len(covered)
    return tuple(minutes)
