"""The load to come, told from triggers alone: its busiest minutes, what starts together, and what would spread it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

from duetime.model.time import HOUR, MINUTE, SECOND, Instant, Micros
from duetime.model.triggers.base import NoOccurrence, Trigger
from duetime.model.triggers.combined import AtMost, Between
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.cron_expression import CRON_MACROS
from duetime.model.triggers.zones import Zone

MOST_WALKED_IN_ALL = 500_000
"""How many occurrences are walked in all."""
MOST_PERIODS_COUNTED = 500_000
"""How many stretches are counted in all; the more rules are counted, the longer each stretch."""
LEAST_WALK = 100
"""How far a rule is walked in any case that cannot be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleLoad:
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
class CountedPeriod:
    """A stretch in which something comes so often that it was only counted."""

    after: Instant
    until: Instant
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadGroup:
    """Schedules whose jobs fall due at the same instants, and these instants or, where there are many, their number."""

    names: tuple[str, ...]
    trigger: Trigger
    due: tuple[Instant, ...] = ()
    pieces: tuple[CountedPeriod, ...] = ()
    cut: bool = False
    """Whether there is more than could be looked at."""
    jittered: bool = False

    @property
    def comes(self) -> int:
        """How often each of them comes."""
        return len(self.due) + sum(piece.count for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadForecast:
    """What comes after `start`, up to and with `end`."""

    start: Instant
    end: Instant
    groups: tuple[LoadGroup, ...]
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


def forecast_load(plans: Iterable[ScheduleLoad], *, start: Instant, length: Micros) -> LoadForecast:
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
    left = MOST_WALKED_IN_ALL - sum(len(group.due) for group in groups)
    share = max(LEAST_WALK, left // len(unknown)) if unknown else 0
    groups += [_walk(rule, end, at_most=share) for rule in unknown]
    return LoadForecast(start=start, end=end, groups=tuple(groups), minutes=_minutes(groups, start, end))


def _alike(plans: Iterable[ScheduleLoad], start: Instant) -> list[_Rule]:
    found: dict[tuple[str, Instant, int | None], list[ScheduleLoad]] = {}
    for plan in plans:
        found.setdefault((plan.same, max(start, plan.since), plan.most), []).append(plan)
    return [
        _Rule(tuple(sorted(plan.name for plan in alike)), alike[0].trigger, after, most)
        for (_, after, most), alike in found.items()
    ]


def _look(known: list[tuple[int, _Rule]], end: Instant) -> list[LoadGroup]:
    """Walk the rare ones, as many as the steps allow, and count the rest by stretches."""
    known.sort(key=lambda counted: counted[0])
    steps, walked = 0, 0
    while walked < len(known) and steps + known[walked][0] <= MOST_WALKED_IN_ALL:
        steps += known[walked][0]
        walked += 1
    groups = [_walk(rule, end, at_most=count) for count, rule in known[:walked]]
    each = MOST_PERIODS_COUNTED // max(1, len(known) - walked)
    return groups + [_counted(rule, end, total=count, pieces=each) for count, rule in known[walked:]]


def _walk(rule: _Rule, end: Instant, *, at_most: int) -> LoadGroup:
    trigger, due, jittered = rule.trigger, list[Instant](), False
    most = at_most if rule.most is None else min(at_most, rule.most)
    occurrence = trigger.first(rule.after, until=end)
    while not isinstance(occurrence, NoOccurrence) and occurrence <= end and len(due) < most:
        due.append(trigger.due(occurrence))
        jittered = jittered or due[-1] != occurrence
        occurrence = trigger.first(occurrence, until=end)
    looked = occurrence.through if isinstance(occurrence, NoOccurrence) else occurrence - 1
    more = looked < end and len(due) != rule.most
    return LoadGroup(names=rule.names, trigger=trigger, due=tuple(due), cut=more, jittered=jittered)


def _counted(rule: _Rule, end: Instant, *, total: int, pieces: int) -> LoadGroup:
    """Count a rule hour by hour, or by longer stretches when so many of them would be too many."""
    length = max(HOUR, -(-(end - rule.after) // max(1, pieces)))
    found: list[CountedPeriod] = []
    after, left = rule.after, total
    while after < end and left:
        # Stretches end right before the hour, as far as they are that short: what comes on it belongs to the next.
        until = min(end, ((after + 1) // length + 1) * length - 1)
        count = min(left, rule.trigger.count(after, until) or 0)
        if count:
            found.append(CountedPeriod(after=after, until=until, count=count))
        after, left = until, left - count
    return LoadGroup(names=rule.names, trigger=rule.trigger, pieces=tuple(found))


def _minutes(groups: Iterable[LoadGroup], start: Instant, end: Instant) -> tuple[float, ...]:
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


_HOUR_SECONDS = 3600


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
class LoadCollision:
    """Schedules whose jobs fall due in the same second, together and without others."""

    names: tuple[str, ...]
    """Some of them."""
    schedules: int
    times: int
    first: Instant


def by_hour(survey: LoadForecast, zone: Zone) -> list[tuple[Instant, float]]:
    """Return how much comes in each hour of the zone's wall clock, and when the hour begins."""
    hours: dict[Instant, float] = {}
    for number, jobs in enumerate(survey.minutes):
        second = survey.first_minute // SECOND + number * 60
        offset = zone.stretch_at(second).offset
        begins = ((second + offset) // _HOUR_SECONDS * _HOUR_SECONDS - offset) * SECOND
        hours[begins] = hours.get(begins, 0) + jobs
    return sorted(hours.items())


def busiest(survey: LoadForecast, *, limit: int, names: int) -> list[BusyMinute]:
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


def collisions(survey: LoadForecast, *, limit: int, names: int) -> list[LoadCollision]:
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
        LoadCollision(
            names=_some([survey.groups[index] for index in sorted(set(who))], names),
            schedules=sizes[who],
            times=times[who],
            first=firsts[who] * SECOND,
        )
        for who in most[:limit]
    ]


def _size(groups: Iterable[LoadGroup]) -> int:
    return sum(len(group.names) for group in groups)


def _some(groups: Iterable[LoadGroup], limit: int) -> tuple[str, ...]:
    return tuple(sorted(chain.from_iterable(group.names[:limit] for group in groups))[:limit])


TRIED_JITTER: Micros = 10 * MINUTE
"""The jitter that is tried out."""

_MINUTE_OF_FIVE = -5
_STEP = re.compile(r"(?:\*|0|0-59)/(\d{1,2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPeaks:
    """The most jobs in one minute: as it is, and as it would be."""

    now: int
    hashed: int
    """With `H` in place of the minutes that are fixed."""
    hashable: int
    """How many schedules have such minutes."""
    jittered: int
    """About how many, if those that can have a jitter had one."""
    jitterable: int
    """How many schedules have none and come seldom enough for one."""


def load_peaks(survey: LoadForecast) -> LoadPeaks:
    """Try both ways on the load that was found."""
    hashed, hashable = _hashed(survey)
    jittered, jitterable = _jittered(survey)
    return LoadPeaks(
        now=_peak(survey.minutes),
        hashed=_peak(hashed),
        hashable=hashable,
        jittered=_peak(jittered),
        jitterable=jitterable,
    )


def _hashed(survey: LoadForecast) -> tuple[list[float], int]:
    """Move what comes at fixed minutes to where `H` would put it."""
    minutes, first, moved = list(survey.minutes), survey.first_minute // MINUTE, 0
    for group in survey.groups:
        shifts = Counter(
            shift for name in group.names if (shift := hash_shift(group.trigger, name)) is not None
        )
        moved += shifts.total()
        for due in group.due:
            here = due // MINUTE - first
            for shift, schedules in shifts.items():
                _add(minutes, here, -schedules)
                _add(minutes, here + shift, schedules)
    return minutes, moved


def hash_shift(trigger: Trigger, name: str) -> int | None:
    """Return by how many minutes `H` in place of a fixed minute would move a schedule; `None`: it has none."""
    while isinstance(trigger, AtMost | Between):
        trigger = trigger.trigger
    if not isinstance(trigger, Cron):
        return None
    minute = CRON_MACROS.get(trigger.expression.lower(), trigger.expression).split()[_MINUTE_OF_FIVE]
    if minute.isdecimal():
        return _draw("H", name) - int(minute)
    if step := _STEP.fullmatch(minute):
        # A step of one is every minute, whatever it begins with.
        return _draw(f"H/{step[1]}", name) if int(step[1]) > 1 else None
    return None


def _draw(minute: str, name: str) -> int:
    """Ask a rule of that name, so that what is told is what comes."""
    return (Cron(f"{minute} * * * *", seed=name).after(-1) or 0) // MINUTE


def _jittered(survey: LoadForecast) -> tuple[list[float], int]:
    """Share out what comes in a minute evenly over the jitter, which is what many schedules come to."""
    width, first = TRIED_JITTER // MINUTE, survey.first_minute // MINUTE
    steady, moved = list(survey.minutes), [0.0] * len(survey.minutes)
    eligible = [group for group in survey.groups if _takes_jitter(group, survey)]
    for group in eligible:
        for due in group.due:
            _add(steady, due // MINUTE - first, -len(group.names))
            _add(moved, due // MINUTE - first, len(group.names))
    sums = [0.0, *accumulate(moved)]
    spread = [(sums[n + 1] - sums[max(0, n + 1 - width)]) / width for n in range(len(moved))]
    total = [here + more for here, more in zip(steady, spread, strict=True)]
    return total, sum(len(group.names) for group in eligible)


def _takes_jitter(group: LoadGroup, survey: LoadForecast) -> bool:
    if group.jittered or not group.due:
        return False
    return len(group.due) * TRIED_JITTER <= survey.end - survey.start


def _add(minutes: list[float], number: int, jobs: int) -> None:
    if 0 <= number < len(minutes):
        minutes[number] += jobs


def _peak(minutes: Sequence[float]) -> int:
    most = max(minutes)
    # A job that is spread over ten minutes falls into one of them all the same.
    return max(1, round(most)) if most > 0 else 0
