"""Cron rules against a walker that looks at every second, and properties that hold for all rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from duetime.errors import InvalidCron
from duetime.model.triggers.cron import cron
from duetime.model.triggers.specs import trigger_from_spec
from tests.support.profiles import tries

HOURS_BEFORE, HOURS_AFTER = 3, 2
# Each is the first instant of a new offset, in UTC.
CHANGES = [
    ("Europe/Berlin", "2025-03-30T01:00"),
    ("Europe/Berlin", "2025-10-26T01:00"),
    ("America/New_York", "2025-03-09T07:00"),
    ("America/New_York", "2025-11-02T06:00"),
    ("Australia/Lord_Howe", "2025-10-04T15:30"),
    ("Australia/Lord_Howe", "2025-04-05T15:00"),
    ("Africa/Cairo", "2025-04-24T22:00"),
    ("Africa/Cairo", "2025-10-30T21:00"),
    ("Antarctica/Troll", "2025-03-30T01:00"),
    ("Antarctica/Troll", "2025-10-26T01:00"),
    ("America/St_Johns", "2010-03-14T03:31"),
    ("UTC", "2025-01-01T00:00"),
]


@dataclass(frozen=True)
class Part:
    """One field: its text and the values it stands for, built together so that neither is parsed from the other."""

    text: str
    values: frozenset[int]


@dataclass(frozen=True)
class Rule:
    second: Part
    minute: Part
    hour: Part
    day: Part
    month: Part
    weekday: Part

    @property
    def expression(self) -> str:
        parts = (self.second, self.minute, self.hour, self.day, self.month, self.weekday)
        return " ".join(part.text for part in parts)

    @property
    def floating(self) -> bool:
        return self.minute.text.startswith("*") or self.hour.text.startswith("*")

    def matches(self, wall: datetime) -> bool:
        if (
            wall.second not in self.second.values
            or wall.minute not in self.minute.values
            or wall.hour not in self.hour.values
            or wall.month not in self.month.values
        ):
            return False
        day, weekday = wall.day in self.day.values, wall.isoweekday() % 7 in self.weekday.values
        if self.day.text.startswith("*") or self.weekday.text.startswith("*"):
            return day and weekday
        return day or weekday


@st.composite
def parts(draw: st.DrawFn, low: int, top: int, *, star: int = 1, high: int | None = None) -> Part:
    """A field of values from `low` to `top`; the larger `star`, the more often it is open.

    Values written out stay at or below `high`, so that every date comes.
    """
    form = draw(st.sampled_from(["*"] * star + ["*/", "list", "range", "step"]))
    if form == "*":
        return Part("*", frozenset(range(low, top + 1)))
    step = draw(st.integers(1, top - low))
    if form == "*/":
        return Part(f"*/{step}", frozenset(range(low, top + 1, step)))
    written = st.integers(low, top if high is None else high)
    if form == "list":
        values = draw(st.lists(written, min_size=1, max_size=4))
        return Part(",".join(map(str, values)), frozenset(values))
    first, last = sorted((draw(written), draw(written)))
    if form == "range":
        return Part(f"{first}-{last}", frozenset(range(first, last + 1)))
    return Part(f"{first}-{last}/{step}", frozenset(range(first, last + 1, step)))


OPEN_DAY, OPEN_MONTH = Part("*", frozenset(range(1, 32))), Part("*", frozenset(range(1, 13)))
OPEN_WEEKDAY = Part("*", frozenset(range(7)))
ANY_RULE = st.builds(
    Rule,
    second=parts(0, 59),
    minute=parts(0, 59),
    hour=parts(0, 23),
    day=parts(1, 31, star=3, high=28),
    month=parts(1, 12, star=6),
    weekday=parts(0, 6, star=3),
)
# Hours in which clocks are changed.
NIGHTLY_RULE = st.builds(
    Rule,
    second=parts(0, 59),
    minute=parts(0, 59),
    hour=st.sampled_from(
        [
            Part("*", frozenset(range(24))),
            Part("*/2", frozenset(range(0, 24, 2))),
            Part("0-4", frozenset(range(5))),
            Part("1,2", frozenset({1, 2})),
            Part("2", frozenset({2})),
            Part("23,0", frozenset({0, 23})),
        ]
    ),
    day=st.just(OPEN_DAY),
    month=st.just(OPEN_MONTH),
    weekday=st.just(OPEN_WEEKDAY),
)


@cache
def seconds_around(tz: str, change: str) -> list[tuple[datetime, datetime]]:
    """Every second around a change: the instant and what the wall clock shows."""
    middle = datetime.fromisoformat(change).replace(tzinfo=UTC)
    start = middle - timedelta(hours=HOURS_BEFORE)
    zone, count = ZoneInfo(tz), (HOURS_BEFORE + HOURS_AFTER) * 3600
    instants = [start + timedelta(seconds=number) for number in range(count)]
    return [(instant, instant.astimezone(zone).replace(tzinfo=None)) for instant in instants]


def walk(rule: Rule, tz: str, change: str) -> Iterator[datetime]:
    """Yield what is due, by the definition: a fixed rule is due when a matching wall time is passed for the first time."""
    around = seconds_around(tz, change)
    newest, floating = around[0][1], rule.floating
    for instant, wall in around[1:]:
        if floating:
            if rule.matches(wall):
                yield instant
            continue
        due = False
        while newest < wall:
            newest += timedelta(seconds=1)
            due = due or rule.matches(newest)
        if due:
            yield instant


@pytest.mark.parametrize(("tz", "change"), CHANGES)
@settings(max_examples=10, deadline=None)
@given(rule=NIGHTLY_RULE)
def test_a_rule_agrees_with_a_walk_over_every_second_around_a_clock_change(
    tz: str, change: str, rule: Rule
) -> None:
    expected = list(walk(rule, tz, change))
    around, trigger = seconds_around(tz, change), cron(rule.expression, tz=tz)
    moment, found = around[0][0], []
    while (following := trigger.next_after(moment)) is not None and following <= around[-1][0]:
        moment = following
        found.append(moment)
    assert found == expected


ZONES = st.sampled_from(
    sorted({tz for tz, _ in CHANGES} | {"Pacific/Apia", "America/Sao_Paulo", "Asia/Kathmandu"})
)
MOMENTS = st.datetimes(datetime(1975, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - Hypothesis wants bounds without a zone


@tries(3)
@given(rule=ANY_RULE, tz=ZONES, moment=MOMENTS)
def test_times_rise_strictly_and_match_every_field_or_stand_at_the_end_of_a_gap(
    rule: Rule, tz: str, moment: datetime
) -> None:
    trigger, zone = cron(rule.expression, tz=tz), ZoneInfo(tz)
    for _ in range(5):
        following = trigger.next_after(moment)
        assert following is not None
        assert following > moment
        wall = following.astimezone(zone).replace(tzinfo=None)
        if not rule.matches(wall):
            before = (following - timedelta(seconds=1)).astimezone(zone).replace(tzinfo=None)
            skipped = wall - before
            assert not rule.floating
            assert skipped > timedelta(seconds=1)
            assert any(
                rule.matches(before + timedelta(seconds=n)) for n in range(1, int(skipped.total_seconds()))
            )
        moment = following


@tries(2)
@given(rule=ANY_RULE, tz=ZONES, moment=MOMENTS, wait=st.integers(1, 10**12))
def test_the_next_time_does_not_depend_on_where_the_search_began(
    rule: Rule, tz: str, moment: datetime, wait: int
) -> None:
    trigger = cron(rule.expression, tz=tz)
    following = trigger.next_after(moment)
    assert following is not None
    later = min(moment + timedelta(microseconds=wait), following - timedelta(microseconds=1))
    assert trigger.next_after(later) == following


@given(rule=ANY_RULE, tz=ZONES)
def test_a_rule_is_read_back_from_its_spec(rule: Rule, tz: str) -> None:
    trigger = cron(rule.expression, tz=tz)
    assert trigger_from_spec(trigger.to_spec()) == trigger


@given(st.text(alphabet="0123456789*/-,#?LWH()@ MONFRIJA=TZ", max_size=30))
def test_no_text_escapes_as_another_error(text: str) -> None:
    try:
        trigger = cron(text)
    except InvalidCron:
        return
    assert trigger.describe()
    assert trigger.next_after(datetime(2025, 1, 1, tzinfo=UTC)) is not None
