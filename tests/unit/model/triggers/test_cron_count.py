"""How many occurrences lie in a range, told without walking them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from duetime.model.time import LATEST, SECOND, Instant, from_datetime
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.cron_fields import CronDays
from duetime.model.triggers.zones import Zone
from tests.support.profiles import tries

HOUR = 3_600 * SECOND
DAY = 24 * HOUR
MOST_WALKED = 1_000

# The first instant of a new offset, in zones that change it in different ways.
CHANGES = [
    ("Europe/Berlin", "2025-03-30T01:00"),
    ("Europe/Berlin", "2025-10-26T01:00"),
    ("America/New_York", "2025-11-02T06:00"),
    ("Australia/Lord_Howe", "2025-10-04T15:30"),
    ("Australia/Lord_Howe", "2025-04-05T15:00"),
    ("Africa/Cairo", "2025-04-24T22:00"),
    ("Africa/Cairo", "2025-10-30T21:00"),
    ("Antarctica/Troll", "2025-03-30T01:00"),
    ("Antarctica/Troll", "2025-10-26T01:00"),
    ("America/St_Johns", "2010-11-07T02:31"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("UTC", "2025-01-01T00:00"),
]


def instant(text: str) -> Instant:
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))


def walk(rule: Cron, after: Instant, until: Instant) -> tuple[Instant, int]:
    """Return where the walk had to end, and how many occurrences it came by."""
    for found in range(MOST_WALKED):
        following = rule.after(after)
        if following is None or following > until:
            return until, found
        after = following
    return after, MOST_WALKED


def values(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.lists(st.integers(low, high), min_size=1, max_size=3).map(
        lambda found: ",".join(map(str, found))
    )
    steps = st.integers(2, high - low).map(lambda step: f"*/{step}")
    return st.one_of(st.just("*"), numbers, steps)


RULES = st.tuples(
    st.sampled_from(["0", "0", "0", "30", "*/20", "15,45", "*"]),
    values(0, 59),
    st.one_of(values(0, 23), st.sampled_from(["0-4", "1,2", "2", "23,0", "*/2"])),
    st.one_of(st.just("*"), values(1, 28), st.sampled_from(["L", "LW", "15W", "1,L"])),
    st.one_of(st.just("*"), values(1, 12)),
    st.one_of(st.just("*"), values(0, 7), st.sampled_from(["FRI#2", "SUNL", "MON-FRI"])),
).map(" ".join)


@tries(4)
@given(
    expression=RULES,
    change=st.sampled_from(CHANGES),
    before=st.integers(0, 3 * DAY),
    length=st.integers(0, 6 * DAY),
)
def test_a_count_around_a_clock_change_is_that_of_the_walk(
    expression: str, change: tuple[str, str], before: int, length: int
) -> None:
    rule = _coming(expression, change[0])
    after = instant(change[1]) - before
    until, expected = walk(rule, after, after + length)
    assert rule.count(after, until) == expected


@tries(3)
@given(
    expression=RULES,
    tz=st.sampled_from([tz for tz, _ in CHANGES]),
    after=st.integers(0, instant("2045-01-01T00:00")),
    length=st.integers(0, 20 * 366 * DAY),
)
def test_a_count_over_months_and_years_is_that_of_the_walk(
    expression: str, tz: str, after: int, length: int
) -> None:
    rule = _coming(expression, tz)
    until, expected = walk(rule, after, after + length)
    assert rule.count(after, until) == expected


def _coming(expression: str, tz: str) -> Cron:
    """Return the rule, with any day where its own would never come."""
    try:
        return Cron(expression, tz)
    except ValueError:
        second, minute, hour, *_ = expression.split()
        return Cron(f"{second} {minute} {hour} * * *", tz)


@pytest.mark.parametrize(
    ("tz", "expression", "start", "end", "expected"),
    [
        ("Europe/Berlin", "30 2 * * *", "2025-03-29T12:00", "2025-03-30T12:00", 1),
        ("Europe/Berlin", "0,10,20 2 * * *", "2025-03-29T12:00", "2025-03-30T12:00", 1),
        ("Europe/Berlin", "0 2,3 * * *", "2025-03-29T12:00", "2025-03-30T12:00", 1),
        ("Europe/Berlin", "*/10 2 * * *", "2025-03-29T12:00", "2025-03-30T12:00", 0),
        ("Europe/Berlin", "* * * * *", "2025-03-29T23:00", "2025-03-30T22:00", 23 * 60),
        ("Europe/Berlin", "30 2 * * *", "2025-10-25T12:00", "2025-10-26T12:00", 1),
        ("Europe/Berlin", "30 2 * * *", "2025-10-26T00:45", "2025-10-26T12:00", 0),
        ("Europe/Berlin", "*/10 2 * * *", "2025-10-25T12:00", "2025-10-26T12:00", 12),
        ("Pacific/Apia", "0 9 * * *", "2011-12-29T00:00", "2011-12-31T12:00", 3),
    ],
)
def test_gaps_and_overlaps_count_as_they_come(
    tz: str, expression: str, start: str, end: str, expected: int
) -> None:
    assert Cron(expression, tz).count(instant(start), instant(end)) == expected


def test_both_ends_of_a_range_are_as_said() -> None:
    rule, noon = Cron("0 12 * * *"), instant("2025-01-01T12:00")
    assert rule.count(noon - 1, noon) == 1
    assert rule.count(noon, noon + 1) == 0
    assert rule.count(noon - 1, noon - 1) == rule.count(noon + 1, noon - DAY) == 0
    assert rule.count(noon - 1, noon + DAY) == 2


def test_ten_years_of_seconds_are_counted_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {"months": 0, "stretches": 0}
    in_month, period_at = CronDays.in_month, Zone.period_at

    def count_month(days: CronDays, year: int, month: int) -> int:
        steps["months"] += 1
        return in_month(days, year, month)

    def count_stretch(zone: Zone, second: int) -> object:
        steps["stretches"] += 1
        return period_at(zone, second)

    monkeypatch.setattr(CronDays, "in_month", count_month)
    monkeypatch.setattr(Zone, "period_at", count_stretch)
    start, end = instant("2020-01-01T00:00"), instant("2030-01-01T00:00")
    assert Cron("* * * * * *", "Europe/Berlin").count(start, end) == (end - start) // SECOND
    # Two changes of the clock a year, the end of each kept year, and the months between.
    assert steps["stretches"] <= 40
    assert steps["months"] <= 300


def test_nothing_is_counted_past_the_end_of_time() -> None:
    assert Cron("* * * * * *", "Asia/Tokyo").count(LATEST - 5 * SECOND, LATEST + DAY) == 5


def test_parts_of_a_range_add_up_across_changes_of_the_clock() -> None:
    rule = Cron("*/7 3 1,2 * * *", "Europe/Berlin")
    edges = [instant("2024-01-01T00:00") + number * 11 * DAY + number * 977_777_777 for number in range(100)]
    assert sum(rule.count(start, end) for start, end in pairwise(edges)) == rule.count(edges[0], edges[-1])
