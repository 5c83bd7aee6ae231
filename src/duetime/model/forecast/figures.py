"""What stands out in a survey: hours, the busiest minutes, and schedules that start together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from duetime.model.durations import MINUTE
from duetime.model.forecast.looking import Group, Survey
from duetime.model.instants import SECOND, Instant
from duetime.model.triggers.zones import Zone

_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyMinute:
    """A minute in which many jobs fall due."""

    at: Instant
    jobs: int
    names: tuple[str, ...]
    """Some of the schedules."""
    schedules: int
    """How many schedules it is in all, without those that were only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collision:
    """Schedules whose jobs fall due in the same second, together and without others."""

    names: tuple[str, ...]
    """Some of them."""
    schedules: int
    times: int
    first: Instant


def by_hour(survey: Survey, zone: Zone) -> list[tuple[Instant, float]]:
    """Return how much comes in each hour of the zone's wall clock, and when the hour begins."""
    hours: dict[Instant, float] = {}
    for number, jobs in enumerate(survey.minutes):
        second = survey.first_minute // SECOND + number * 60
        offset = zone.stretch_at(second).offset
        begins = ((second + offset) // _HOUR * _HOUR - offset) * SECOND
        hours[begins] = hours.get(begins, 0) + jobs
    return sorted(hours.items())


def busiest(survey: Survey, *, limit: int, names: int) -> list[BusyMinute]:
    """Return the minutes with the most jobs, those with more first, and some names for each."""
    loads = enumerate(survey.minutes)
    top = sorted((number for number, jobs in loads if jobs), key=lambda n: (-survey.minutes[n], n))[:limit]
    first = survey.first_minute // MINUTE
    there: dict[int, dict[int, None]] = {first + number: {} for number in top}
    for index, group in enumerate(survey.groups):
        for due in group.due:
            if due // MINUTE in there:
                there[due // MINUTE][index] = None
    found: list[BusyMinute] = []
    for number in top:
        groups = [survey.groups[index] for index in there[first + number]]
        found.append(
            BusyMinute(
                at=(first + number) * MINUTE,
                jobs=round(survey.minutes[number]),
                names=_some(groups, names),
                schedules=_size(groups),
            )
        )
    return found


def collisions(survey: Survey, *, limit: int, names: int) -> list[Collision]:
    """Return which schedules start in the same second, those that do it most often first."""
    together: dict[Instant, list[int]] = {}
    for index, group in enumerate(survey.groups):
        for due in group.due:
            together.setdefault(due // SECOND, []).append(index)
    times: Counter[tuple[int, ...]] = Counter()
    firsts: dict[tuple[int, ...], Instant] = {}
    for second, indices in together.items():
        who = tuple(indices)
        times[who] += 1
        firsts[who] = min(second, firsts.get(who, second))
    sizes = {who: _size(survey.groups[index] for index in set(who)) for who in times}
    most = sorted(
        (who for who, size in sizes.items() if size > 1),
        key=lambda who: (-times[who], -sizes[who], firsts[who]),
    )
    return [
        Collision(
            names=_some([survey.groups[index] for index in sorted(set(who))], names),
            schedules=sizes[who],
            times=times[who],
            first=firsts[who] * SECOND,
        )
        for who in most[:limit]
    ]


def _size(groups: Iterable[Group]) -> int:
    return sum(len(group.names) for group in groups)


def _some(groups: Iterable[Group], limit: int) -> tuple[str, ...]:
    return tuple(sorted(chain.from_iterable(group.names[:limit] for group in groups))[:limit])
