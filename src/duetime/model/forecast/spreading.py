"""What the busiest minute would be if fixed minutes were `H`, or schedules had a jitter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from duetime.model.durations import MINUTE
from duetime.model.forecast.looking import Group, Survey
from duetime.model.instants import Micros
from duetime.model.triggers.at_most import AtMost
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.between import Between
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.cron_parse import MACROS

JITTER: Micros = 10 * MINUTE
"""The jitter that is tried out."""

_MINUTE_OF_FIVE = -5
_STEP = re.compile(r"(?:\*|0|0-59)/(\d{1,2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
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


def peaks(survey: Survey) -> Peaks:
    """Try both ways on the load that was found."""
    hashed, hashable = _hashed(survey)
    jittered, jitterable = _jittered(survey)
    return Peaks(
        now=_peak(survey.minutes),
        hashed=_peak(hashed),
        hashable=hashable,
        jittered=_peak(jittered),
        jitterable=jitterable,
    )


def _hashed(survey: Survey) -> tuple[list[float], int]:
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
    minute = MACROS.get(trigger.expression.lower(), trigger.expression).split()[_MINUTE_OF_FIVE]
    if minute.isdecimal():
        return _draw("H", name) - int(minute)
    if step := _STEP.fullmatch(minute):
        # A step of one is every minute, whatever it begins with.
        return _draw(f"H/{step[1]}", name) if int(step[1]) > 1 else None
    return None


def _draw(minute: str, name: str) -> int:
    """Ask a rule of that name, so that what is told is what comes."""
    return (Cron(f"{minute} * * * *", seed=name).after(-1) or 0) // MINUTE


def _jittered(survey: Survey) -> tuple[list[float], int]:
    """Share out what comes in a minute evenly over the jitter, which is what many schedules come to."""
    width, first = JITTER // MINUTE, survey.first_minute // MINUTE
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


def _takes_jitter(group: Group, survey: Survey) -> bool:
    if group.jittered or not group.due:
        return False
    return len(group.due) * JITTER <= survey.end - survey.start


def _add(minutes: list[float], number: int, jobs: int) -> None:
    if 0 <= number < len(minutes):
        minutes[number] += jobs


def _peak(minutes: Sequence[float]) -> int:
    most = max(minutes)
    # A job that is spread over ten minutes falls into one of them all the same.
    return max(1, round(most)) if most > 0 else 0
