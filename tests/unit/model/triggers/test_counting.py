"""How many occurrences combined triggers have, against a walk."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from duetime import calendars
from duetime.model.time import LATEST, SECOND, from_datetime
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.calendars import Calendar, SingleBlackout
from duetime.model.triggers.combined import AtMost, Between, Except, Intersection, Jitter, Union
from duetime.model.triggers.cron import Cron, cron
from duetime.model.triggers.every import CalendarSteps, Every, every
from duetime.model.triggers.rrule import rrule
from tests.support.profiles import tries
from tests.support.triggers import DAY, walk

HOUR = 3_600 * SECOND
# The first instant of a new offset, forward and back.
CHANGES = [
    ("Europe/Berlin", "2025-03-30T01:00"),
    ("Europe/Berlin", "2025-10-26T01:00"),
    ("Australia/Lord_Howe", "2025-10-04T15:30"),
    ("Australia/Lord_Howe", "2025-04-05T15:00"),
    ("Africa/Cairo", "2025-04-24T22:00"),
    ("Antarctica/Troll", "2025-10-26T01:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("UTC", "2025-01-01T00:00"),
]
RULES = [
    "30 2 * * *", "0,15,45 2 * * *", "0 3 * * *", "30 1,2,3 * * *", "*/20 * * * *", "10,30 * * * *", "*/30 2 * * *",
    "0 0 * * *", "0 */3 * * *", "45 2 26,30 * MON", "0 2,3 L * *", "15,45 0-4 * * SUN",
]  # fmt: skip


def instant(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))


def crons(tz: str) -> st.SearchStrategy[Trigger]:
    return st.sampled_from(RULES).map(lambda rule: Cron(rule, tz))


def around(change: int, *, days: int = 2) -> st.SearchStrategy[int]:
    """Instants near a change of the clock, many of them on a quarter of an hour."""
    quarters = st.integers(-96 * days, 96 * days).map(lambda number: change + number * HOUR // 4)
    return quarters | st.integers(change - days * DAY, change + days * DAY)


def closed(change: int, tz: str) -> st.SearchStrategy[Calendar]:
    day = datetime.fromtimestamp(change // SECOND, UTC).date()
    times = st.integers(0, 95).map(lambda number: f"{number // 4:02}:{number % 4 * 15:02}")
    windows = (
        st.tuples(times, times)
        .filter(lambda ends: ends[0] != ends[1])
        .map(lambda ends: calendars.blackout(*ends, tz=tz))
    )
    spans = st.tuples(around(change), st.integers(1, 30 * HOUR)).map(
        lambda at: SingleBlackout(start=at[0], end=at[0] + at[1])
    )
    fixed = st.sampled_from([calendars.weekends(tz=tz), calendars.weekends(), calendars.holidays([day])])
    return windows | spans | fixed


def nested(
    change: int, tz: str, leaves: st.SearchStrategy[Trigger], *, most: int
) -> st.SearchStrategy[Trigger]:
    """Triggers made of these in every way."""

    def more(inner: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
        def several(kind: Callable[[tuple[Trigger, ...]], Trigger]) -> st.SearchStrategy[Trigger]:
            return st.lists(inner, min_size=2, max_size=3).map(lambda parts: kind(tuple(parts)))

        ranges = st.tuples(around(change), st.integers(0, 2 * DAY))
        return (
            several(Union)
            | several(Intersection)
            | st.builds(Except, inner, closed(change, tz))
            | st.builds(lambda trigger, at: Between(trigger, at[0], at[0] + at[1]), inner, ranges)
            | inner.map(lambda trigger: trigger.jitter("30s"))
        )

    return st.recursive(leaves, more, max_leaves=most)


def cases(tz: str, text: str) -> st.SearchStrategy[tuple[Trigger, int, int]]:
    """Triggers and two instants near a change of the clock."""
    change = instant(text)
    intervals = st.integers(1, 24).map(lambda number: number * HOUR // 4)
    leaves = crons(tz) | crons("UTC")
    leaves |= st.builds(Every, interval=intervals, start=around(change), end=st.none() | around(change))
    leaves |= st.builds(At, st.lists(around(change), min_size=1, max_size=20).map(tuple))
    leaves |= st.builds(CalendarSteps, months=st.just(1), start=around(change), tz=st.just(tz))
    triggers = nested(change, tz, leaves, most=6)
    return st.tuples(triggers, around(change), around(change))


MIXED = st.one_of([cases(*change) for change in CHANGES])


def occurrences(trigger: Trigger, after: int, until: int) -> set[int]:
    """Walk the simple triggers, and combine what they say one by one."""
    if isinstance(trigger, Union | Intersection):
        parts = [occurrences(part, after, until) for part in trigger.parts]
        return set.union(*parts) if isinstance(trigger, Union) else set.intersection(*parts)
    if isinstance(trigger, Except):
        found = occurrences(trigger.trigger, after, until)
        return {at for at in found if trigger.calendar.why(at) is None}
    if isinstance(trigger, Between):
        start, end = trigger.start or 0, trigger.end or LATEST
        return {at for at in occurrences(trigger.trigger, after, until) if start <= at <= end}
    if isinstance(trigger, Jitter | AtMost):
        return occurrences(trigger.trigger, after, until)
    return set(walk(trigger, after, until=until, most=2_000))


@tries(1.5)
@given(case=MIXED)
def test_where_triggers_of_all_kinds_can_be_counted_the_count_is_that_of_the_walk(
    case: tuple[Trigger, int, int],
) -> None:
    trigger, *ends = case
    assert trigger.count(*sorted(ends)) in (None, len(occurrences(trigger, *sorted(ends))))


FROM = datetime(2025, 1, 1, tzinfo=UTC)
START = from_datetime(FROM)


@pytest.mark.parametrize(
    ("trigger", "days", "expected"),
    [
        (cron("* * * * *").at_most(3), 60, 60 * 1440),
        (every("2s", start=FROM).between(end=FROM + timedelta(days=1)).jitter("1s"), 60, 43_200),
        (every(months=1, start=FROM).at_most(3), 364, 11),
    ],
)
def test_a_long_time_is_counted_in_few_questions(
    trigger: Trigger, days: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def counted(kind: type[Trigger], name: str) -> None:
        original = getattr(kind, name)

        def ask(*arguments: object) -> object:
            nonlocal asked
            asked += 1
            return original(*arguments)

        monkeypatch.setattr(kind, name, ask)

    for kind in (Cron, Every, CalendarSteps):
        counted(kind, "after")
        counted(kind, "count")
    assert trigger.count(START, START + days * DAY) == expected
    assert asked < 300


@pytest.mark.parametrize(
    "trigger",
    [
        cron("* * * * *") | cron("0 * * * *"),
        cron("* * * * *") & cron("* * * * *", tz="Asia/Tokyo"),
        (cron("* * * * *") - calendars.weekends()).jitter("1s"),
        rrule("FREQ=DAILY", start=FROM).between(end=FROM),
    ],
)
def test_what_would_take_a_walk_is_left_to_the_caller(trigger: Trigger) -> None:
    assert trigger.count(START, START + 7 * DAY) is None
