"""The load to come, told from triggers alone: its busiest minutes, what starts together, and what would spread it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
"""How many periods are counted in all; the more rules are counted, the longer each period."""
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


class CountedPeriod(NamedTuple):
    """A period in which something comes so often that it was only counted."""

    after: Instant
    until: Instant
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadGroup:
    """Schedules whose jobs fall due at the same instants, and these instants or, where there are many, their number."""

    names: tuple[str, ...]
    trigger: Trigger
    after: Instant
    most: int | None
    """How many jobs each of them may still make."""
    due: tuple[Instant, ...] = ()
    pieces: tuple[CountedPeriod, ...] = ()
    cut: bool = False
    """Whether there is more than could be looked at."""
    jittered: bool = False

    @property
    def comes(self) -> int:
        """How often each of them comes."""
        return len(self.due) + sum(piece.times for piece in self.pieces)

    def known(self, end: Instant) -> int | None:
        """How often each of them comes up to the end, if that can be told without a walk."""
        count = self.trigger.count(self.after, end)
        return count if count is None or self.most is None else min(count, self.most)


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


def forecast_load(plans: Iterable[ScheduleLoad], *, start: Instant, length: Micros) -> LoadForecast:
    """Walk the rules that come seldom, count the others, and walk what cannot be counted as far as the steps go."""
    end = start + length
    asked = [(group.known(end), group) for group in _alike(plans, start)]
    known = sorted(((count, group) for count, group in asked if count is not None), key=lambda one: one[0])
    unknown = [group for count, group in asked if count is None]
    groups: list[LoadGroup] = []
    left = MOST_WALKED_IN_ALL
    for number, (count, group) in enumerate(known):
        if count > left:
            most = MOST_PERIODS_COUNTED // (len(known) - number)
            groups += [_counted(group, end, total=count, most=most) for count, group in known[number:]]
            break
        groups.append(_walked(group, end, most=count))
        left -= count
    share = max(LEAST_WALK, left // len(unknown)) if unknown else 0
    groups += [_walked(group, end, most=share) for group in unknown]
    return LoadForecast(start=start, end=end, groups=tuple(groups), minutes=_minutes(groups, start, end))


def _alike(plans: Iterable[ScheduleLoad], start: Instant) -> list[LoadGroup]:
    found: defaultdict[tuple[str, Instant, int | None], list[ScheduleLoad]] = defaultdict(list)
    for plan in plans:
        found[plan.same, max(start, plan.since), plan.most].append(plan)
    return [
        LoadGroup(
            names=tuple(sorted(plan.name for plan in alike)), trigger=alike[0].trigger, after=after, most=most
        )
        for (_, after, most), alike in found.items()
    ]


def _walked(group: LoadGroup, end: Instant, *, most: int) -> LoadGroup:
    trigger, due, jittered = group.trigger, list[Instant](), False
    most = most if group.most is None else min(most, group.most)
    occurrence = trigger.first(group.after, until=end)
    while not isinstance(occurrence, NoOccurrence) and occurrence <= end and len(due) < most:
        due.append(trigger.due(occurrence))
        jittered = jittered or due[-1] != occurrence
        occurrence = trigger.first(occurrence, until=end)
    looked = occurrence.through if isinstance(occurrence, NoOccurrence) else occurrence - 1
    more = looked < end and len(due) != group.most
    return replace(group, due=tuple(due), cut=more, jittered=jittered)


def _counted(group: LoadGroup, end: Instant, *, total: int, most: int) -> LoadGroup:
    """Count a rule hour by hour, or by longer periods where that would be more than `most` of them."""
    length = max(HOUR, -(-(end - group.after) // max(1, most)))
    found: list[CountedPeriod] = []
    after, left = group.after, total
    while after < end and left:
        # Periods of an hour end right before the next: what comes on the hour belongs to that.
        until = min(end, ((after + 1) // length + 1) * length - 1)
        if count := min(left, group.trigger.count(after, until) or 0):
            found.append(CountedPeriod(after, until, count))
        after, left = until, left - count
    return replace(group, pieces=tuple(found))


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
            counted[piece.after, piece.until] += piece.times * weight
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
    minutes, first = survey.minutes, survey.first_minute // MINUTE
    top = sorted((n for n, jobs in enumerate(minutes) if jobs), key=lambda n: (-minutes[n], n))[:limit]
    coming: dict[int, dict[int, LoadGroup]] = {first + number: {} for number in top}
    for index, group in enumerate(survey.groups):
        for due in group.due:
            if (there := coming.get(due // MINUTE)) is not None:
                there[index] = group
    return [
        BusyMinute(
            at=minute * MINUTE,
            jobs=round(minutes[minute - first]),
            names=_some(there.values(), names),
            schedules=_size(there.values()),
        )
        for minute, there in coming.items()
    ]


def collisions(survey: LoadForecast, *, limit: int, names: int) -> list[LoadCollision]:
    """Return which schedules start in the same second, those that do it most often first."""
    together: defaultdict[int, list[int]] = defaultdict(list)
    for index, group in enumerate(survey.groups):
        for second in dict.fromkeys(due // SECOND for due in group.due):
            together[second].append(index)
    seconds: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for second, indices in together.items():
        seconds[tuple(indices)].append(second)
    found = [
        (_size(survey.groups[index] for index in indices), indices, times)
        for indices, times in seconds.items()
    ]
    shared = [one for one in found if one[0] > 1]
    shared.sort(key=lambda one: (-len(one[2]), -one[0], min(one[2])))
    return [
        LoadCollision(
            names=_some([survey.groups[index] for index in indices], names),
            schedules=size,
            times=len(times),
            first=min(times) * SECOND,
        )
        for size, indices, times in shared[:limit]
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
    (hashed, hashable), (jittered, jitterable) = _hashed(survey), _jittered(survey)
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
