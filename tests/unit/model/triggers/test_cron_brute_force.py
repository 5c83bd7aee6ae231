"""Thousands of rules of six fields against a walker that looks at every second of some hours."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import pytest

from duetime.model.time import Instant, from_datetime
from duetime.model.triggers.cron import cron

RULES_PER_WINDOW = 150
PROBES = 5
HALF_WINDOW = timedelta(hours=2, minutes=15)
# The middle of each window, in UTC: the first instant of a new offset, or the end of a day that ends more than itself.
WINDOWS = [
    ("Europe/Berlin", "2025-03-30T01:00"),
    ("Europe/Berlin", "2025-10-26T01:00"),
    ("America/New_York", "2025-03-09T07:00"),
    ("America/New_York", "2025-11-02T06:00"),
    ("Australia/Lord_Howe", "2025-10-04T15:30"),
    ("Australia/Lord_Howe", "2025-04-05T15:00"),
    ("Africa/Cairo", "2025-04-24T22:00"),
    ("Africa/Cairo", "2025-10-30T21:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00"),
    ("America/Sao_Paulo", "2018-02-18T02:00"),
    ("Antarctica/Troll", "2025-03-30T01:00"),
    ("Antarctica/Troll", "2025-10-26T01:00"),
    ("America/St_Johns", "2010-03-14T03:31"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("UTC", "2024-03-01T00:00"),
    ("Asia/Kathmandu", "2024-12-31T18:15"),
]


class Passed(NamedTuple):
    """A second of the wall clock, and the instant at which it is shown or made up for."""

    second: int
    day: int
    month: int
    weekday: int
    due: Instant


Minutes: TypeAlias = dict[tuple[int, int], list[Passed]]
"""Seconds by the hour and the minute that they are in."""


@dataclass(frozen=True)
class Window:
    start: Instant
    end: Instant
    middle: datetime
    """On the wall."""
    shown: Minutes
    first: Minutes
    """Each wall time when the clock reaches or passes it for the first time."""


@cache
def window(tz: str, middle: str) -> Window:
    zone, moment = ZoneInfo(tz), datetime.fromisoformat(middle).replace(tzinfo=UTC)
    instant, end = moment - HALF_WINDOW, moment + HALF_WINDOW
    start, newest = instant, instant.astimezone(zone).replace(tzinfo=None)
    shown: Minutes = {}
    first: Minutes = {}
    while instant < end:
        instant += timedelta(seconds=1)
        wall = instant.astimezone(zone).replace(tzinfo=None)
        due = from_datetime(instant)
        _add(shown, wall, due)
        while newest < wall:
            newest += timedelta(seconds=1)
            _add(first, newest, due)
    return Window(from_datetime(start), from_datetime(end), moment.astimezone(zone), shown, first)


def _add(minutes: Minutes, wall: datetime, due: Instant) -> None:
    passed = Passed(wall.second, wall.day, wall.month, wall.isoweekday() % 7, due)
    minutes.setdefault((wall.hour, wall.minute), []).append(passed)


@dataclass(frozen=True)
class Field:
    """A field and its values, made together so that neither is read from the other."""

    text: str
    values: frozenset[int]

    @property
    def open(self) -> bool:
        return self.text.startswith("*")


def random_field(rng: random.Random, low: int, high: int, *, near: int, star: float) -> Field:
    """A field that is open as often as `star` says, and often about a value that is near."""
    # Days past the 28th are only meant by open ends, so that every date comes.
    written = min(high, 28) if low else high
    step = rng.randint(1, high - low)
    if rng.random() < star:
        return rng.choice(
            [_field("*", range(low, high + 1)), _field(f"*/{step}", range(low, high + 1, step))]
        )
    some = [rng.choice([near, rng.randint(low, written)]) for _ in range(rng.randint(1, 3))]
    first, last = sorted((rng.randint(low, written), some[0]))
    return rng.choice(
        [
            _field(",".join(map(str, some)), some),
            _field(f"{first}-{last}", range(first, last + 1)),
            _field(f"{first}-{last}/{step}", range(first, last + 1, step)),
            _field(f"{first}/{step}", range(first, high + 1, step)),
        ]
    )


def _field(text: str, values: Iterable[int]) -> Field:
    return Field(text, frozenset(values))


def random_rule(rng: random.Random, wall: datetime) -> list[Field]:
    weekday = random_field(rng, 0, 7, near=wall.isoweekday(), star=0.8)
    return [
        random_field(rng, 0, 59, near=0, star=0.1),
        random_field(rng, 0, 59, near=30, star=0.3),
        random_field(rng, 0, 23, near=(wall.hour - rng.randint(0, 2)) % 24, star=0.3),
        random_field(rng, 1, 31, near=min(wall.day, 28), star=0.8),
        random_field(rng, 1, 12, near=wall.month, star=0.9),
        _field(weekday.text, {value % 7 for value in weekday.values}),
    ]


def expected(rule: list[Field], found: Window) -> list[Instant]:
    """What is due in a window, by looking at every second of it."""
    second, minute, hour, day, month, weekday = rule
    minutes, hours = minute.values, hour.values

    def is_due(wall: Passed) -> bool:
        if wall.second not in second.values or wall.month not in month.values:
            return False
        dated, named = wall.day in day.values, wall.weekday in weekday.values
        return (dated and named) if day.open or weekday.open else (dated or named)

    walls = found.shown if minute.open or hour.open else found.first
    return sorted(
        {
            wall.due
            for (at_hour, at_minute), seconds in walls.items()
            if at_hour in hours and at_minute in minutes
            for wall in seconds
            if is_due(wall)
        }
    )


@pytest.mark.covers("clock-changes", "seconds-first")
@pytest.mark.parametrize(("tz", "middle"), WINDOWS)
def test_random_rules_come_when_a_walk_over_every_second_says(tz: str, middle: str) -> None:
    rng, found, came = random.Random(f"{tz} {middle}"), window(tz, middle), 0
    for _ in range(RULES_PER_WINDOW):
        fields = random_rule(rng, found.middle)
        expression = " ".join(field.text for field in fields)
        rule, due = cron(expression, tz=tz), expected(fields, found)
        instant, walked = found.start, list[Instant]()
        while (following := rule.after(instant)) is not None and following <= found.end:
            walked.append(instant := following)
        assert walked == due, expression
        for _ in range(PROBES):
            moment = rng.randrange(found.start, found.end)
            later = [instant for instant in due if instant > moment]
            assert rule.count(moment, found.end) == len(later), (expression, moment)
            assert not later or rule.after(moment) == later[0], (expression, moment)
        came += bool(due)
    assert came > RULES_PER_WINDOW // 10, "hardly any rule came in this window"
