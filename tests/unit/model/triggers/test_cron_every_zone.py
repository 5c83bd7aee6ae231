"""Every change of the clock in every zone, through the years in which they have changed most."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest

from duetime.model.time import SECOND
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron import cron

FIRST, LAST = (int(datetime(year, 1, 2, tzinfo=UTC).timestamp()) for year in (1994, 2031))
SAMPLE = 4 * 86_400
AROUND = 5_400
STEP = 1_200
"""The rules come every twenty minutes of the wall clock."""


class Change(NamedTuple):
    """The first second of a new offset, by zoneinfo alone."""

    second: int
    before: int
    after: int


def changes_of_every_clock() -> dict[tuple[Change, ...], list[str]]:
    """The changes of each clock, with the zones that keep it."""
    clocks: dict[tuple[Change, ...], list[str]] = {}
    for key in sorted(available_timezones()):
        clocks.setdefault(tuple(changes_of(ZoneInfo(key))), []).append(key)
    return clocks


def changes_of(info: ZoneInfo) -> list[Change]:
    seconds = range(FIRST, LAST, SAMPLE)
    offsets = [datetime.fromtimestamp(second, info).utcoffset() for second in seconds]
    return [
        find_change(info, left, right)
        for (left, before), (right, after) in pairwise(zip(seconds, offsets, strict=True))
        if before != after
    ]


def find_change(info: ZoneInfo, left: int, right: int) -> Change:
    before, after = offset(info, left), offset(info, right)
    while right - left > 1:
        middle = (left + right) // 2
        left, right = (middle, right) if offset(info, middle) == before else (left, middle)
    return Change(right, before, after)


def offset(info: ZoneInfo, second: int) -> int:
    shown = datetime.fromtimestamp(second, info).utcoffset()
    assert shown is not None
    return int(shown.total_seconds())


def around(change: Change) -> tuple[int, int]:
    """The seconds to look at: some before, and some after whatever is skipped or repeated."""
    return change.second - AROUND, change.second + AROUND + abs(change.after - change.before)


def shown_times(change: Change) -> list[int]:
    """The seconds in which the wall shows a time that the rule names."""
    start, end = around(change)
    return [
        *named_times(start + 1, change.second, change.before),
        *named_times(change.second, end + 1, change.after),
    ]


def named_times(start: int, end: int, offset: int) -> range:
    return range(start + (-start - offset) % STEP, end, STEP)


def passed_times(change: Change) -> list[int]:
    """The seconds in which a time that the rule names is reached or passed for the first time."""
    newest = change.second - 1 + change.before
    opening = change.second + change.after
    is_passed = opening > newest and opening // STEP > newest // STEP
    made_up = [change.second] if is_passed else []
    shown = shown_times(change)
    later = [t for t in shown if t > change.second and t + change.after > newest]
    return [t for t in shown if t < change.second] + made_up + later


def walked(rule: Trigger, change: Change) -> list[int]:
    start, end = around(change)
    instant, found = start * SECOND, list[int]()
    while (following := rule.after(instant)) is not None and following <= end * SECOND:
        assert following > instant
        instant = following
        found.append(instant // SECOND)
    assert rule.count(start * SECOND, end * SECOND) == len(found)
    return found


@pytest.mark.covers("clock-changes")
def test_rules_rise_and_come_once_for_each_time_at_every_change_of_every_clock() -> None:
    clocks = changes_of_every_clock()
    assert sum(map(len, clocks.values())) == len(available_timezones())
    assert sum(map(len, clocks)) > 5_000, "hardly any change was found"
    for changes, (tz, *_) in clocks.items():
        fixed, following = cron("0,20,40 0-23 * * *", tz=tz), cron("*/20 * * * *", tz=tz)
        for change in changes:
            assert walked(fixed, change) == passed_times(change), (tz, change)
            assert walked(following, change) == shown_times(change), (tz, change)
