"""Triggers and calendars of every kind, for property tests; all of them come often around `BEGIN`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from hypothesis import strategies as st

from duetime.model.time import SECOND, from_datetime
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.calendars import (
    Calendar,
    DailyBlackout,
    Holidays,
    JoinedCalendars,
    SingleBlackout,
    Weekdays,
)
from duetime.model.triggers.combined import AtMost, Between, Except, Intersection, Jitter, Union
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.every import CalendarSteps, Every
from duetime.model.triggers.rrule import RRule
from duetime.model.triggers.working_days import Rolled, WorkingDay

BEGIN = from_datetime(datetime(2025, 1, 1, tzinfo=UTC))
DAY = 86_400 * SECOND

ZONES = st.sampled_from(["UTC", "Europe/Riga", "Africa/Cairo", "Australia/Lord_Howe", "America/Sao_Paulo"])
INSTANTS = st.integers(BEGIN // SECOND, (BEGIN + 900 * DAY) // SECOND).map(lambda second: second * SECOND)
WEEKDAYS = st.sets(st.integers(0, 6), min_size=1, max_size=5).map(lambda days: tuple(sorted(days)))

CRONS = st.builds(
    Cron,
    st.sampled_from(
        ["0 * * * *", "*/20 * * * *", "30 2 * * *", "0 9 * * MON-FRI", "0 0 1,15,L * *", "H H * * *"]
    ),
    ZONES,
    st.sampled_from(["", "nightly"]),
)
EVERIES = st.builds(
    Every,
    interval=st.integers(600, 100_000).map(lambda second: second * SECOND),
    start=INSTANTS,
    end=st.none() | INSTANTS,
)
STEPS = st.builds(
    CalendarSteps,
    months=st.integers(1, 40),
    start=INSTANTS,
    end=st.none() | INSTANTS,
    tz=ZONES,
    missing=st.sampled_from(["last", "skip"]),
)
ATS = st.builds(At, st.lists(INSTANTS, min_size=1, max_size=20).map(tuple))
RRULES = st.builds(
    RRule,
    rule=st.sampled_from(
        [
            "FREQ=DAILY;BYHOUR=2,9",
            "FREQ=MONTHLY;BYDAY=-1FR",
            "FREQ=WEEKLY;INTERVAL=2",
            "FREQ=MINUTELY;INTERVAL=50",
            "FREQ=DAILY\nEXDATE;VALUE=DATE:20250301\nRDATE:20280101T120000Z",
        ]
    ),
    start=INSTANTS,
    tz=ZONES,
)
WORKING_DAYS = st.builds(
    WorkingDay,
    nth=st.integers(1, 20) | st.integers(-20, -1),
    at=st.integers(0, 86_399),
    calendar=st.builds(Weekdays, days=WEEKDAYS),
    tz=ZONES,
)
LEAVES: st.SearchStrategy[Trigger] = CRONS | EVERIES | STEPS | ATS | RRULES | WORKING_DAYS

WINDOWS = (
    st.tuples(st.integers(0, 86_399), st.integers(1, 86_399))
    .filter(lambda times: times[0] != times[1])
    .flatmap(
        lambda times: st.builds(
            DailyBlackout, start=st.just(times[0]), end=st.just(times[1]), days=WEEKDAYS, tz=st.none() | ZONES
        )
    )
)
DATES = st.tuples(st.dates(date(2025, 1, 1), date(2027, 6, 1)), st.sampled_from(["", "Midsummer"]))
HOLIDAYS = st.builds(
    Holidays, dates=st.lists(DATES, min_size=1, max_size=20).map(tuple), tz=st.none() | ZONES
)
SPANS = st.tuples(INSTANTS, st.integers(1, 100)).map(
    lambda at: SingleBlackout(start=at[0], end=at[0] + at[1] * DAY // 7)
)
WHOLE_DAYS: st.SearchStrategy[Calendar] = (
    st.builds(Weekdays, days=WEEKDAYS)
    | st.builds(Holidays, dates=st.lists(DATES, min_size=1, max_size=40).map(tuple))
    | st.builds(
        lambda days, dates: Weekdays(days=days) | Holidays(dates=tuple(dates)),
        WEEKDAYS,
        st.lists(DATES, min_size=1, max_size=40),
    )
)
CALENDARS: st.SearchStrategy[Calendar] = st.recursive(
    WINDOWS | HOLIDAYS | SPANS | st.builds(Weekdays, days=WEEKDAYS, tz=st.none() | ZONES),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda parts: JoinedCalendars(tuple(parts))),
    max_leaves=4,
)


def several(kind: Callable[[tuple[Trigger, ...]], Trigger]) -> Callable[..., st.SearchStrategy[Trigger]]:
    """Return what builds a union or an intersection of triggers."""
    return lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda parts: kind(tuple(parts)))


def wrapped(inner: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
    """Triggers over one other, without a limit on how many jobs there may be."""
    spans = st.tuples(INSTANTS, st.integers(1, 900))
    return (
        st.builds(Except, inner, CALENDARS)
        | st.builds(lambda trigger, at: Between(trigger, at[0], at[0] + at[1] * DAY), inner, spans)
        | st.builds(Between, inner, st.none(), INSTANTS)
        | st.builds(Rolled, inner, WHOLE_DAYS, st.sampled_from(["next", "previous"]))
        | st.builds(Jitter, inner, st.integers(1_000, DAY), st.sampled_from(["", "nightly"]))
    )


UNLIMITED: st.SearchStrategy[Trigger] = st.recursive(
    LEAVES,
    lambda inner: several(Union)(inner) | several(Intersection)(inner) | wrapped(inner),
    max_leaves=6,
)
TRIGGERS: st.SearchStrategy[Trigger] = UNLIMITED | st.builds(AtMost, UNLIMITED, st.integers(1, 1_000))


class Slow(Trigger):
    """A rule that nothing is known of but its occurrences: seconds with a remainder, which no other rule shares."""

    def __init__(self, length: int, rest: int) -> None:
        self.length, self.rest = length, rest

    def after(self, instant: int) -> int:
        return ((instant - self.rest) // self.length + 1) * self.length + self.rest

    def describe(self) -> str:
        return f"each {self.length} with {self.rest}"

    def __hash__(self) -> int:
        return self.rest


def walk(trigger: Trigger, after: int, *, until: int | None = None, most: int = 200) -> list[int]:
    """Return the occurrences in `after < occurrence <= until`, or the first so many of them."""
    found: list[int] = []
    while len(found) < most and (following := trigger.after(after)) is not None:
        if until is not None and following > until:
            break
        found.append(after := following)
    return found


def moment(text: str) -> datetime:
    """Return an aware datetime; without an offset it is UTC."""
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def days(count: float) -> timedelta:
    """Return so many days."""
    return timedelta(days=count)
