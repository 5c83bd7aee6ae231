from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from duetime.model.time import LATEST, SECOND
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import Every

WEEK = 7 * 86_400 * SECOND
FROM = 1_750_000_000 * SECOND


@dataclass(frozen=True, slots=True)
class Counted(Trigger):
    """A trigger that keeps a record of what it was asked."""

    inner: Trigger
    asked: list[int]

    def after(self, instant: int) -> int | None:
        self.asked.append(instant)
        return self.inner.after(instant)

    def describe(self) -> str:
        return self.inner.describe()

    def to_spec(self) -> dict[str, object]:
        return self.inner.to_spec()


def walk(trigger: Trigger, after: int, until: int) -> list[int]:
    found: list[int] = []
    while (following := trigger.after(after)) is not None and following <= until:
        found.append(after := following)
    return found


def test_a_trigger_shows_its_times_in_utc_and_is_not_limited_unless_it_says_so() -> None:
    trigger = At((5,))
    assert (trigger.tz, trigger.times, trigger.due(5)) == ("UTC", None, 5)
    assert cron("0 3 * * *", tz="Asia/Tokyo").tz == "Asia/Tokyo"
    assert Every(interval=SECOND, times=3).times == 3


def test_a_trigger_that_cannot_count_says_so() -> None:
    assert Counted(At((5,)), []).count(0, 9) is None


@pytest.mark.parametrize("expression", ["* * * * *", "30 2 * * *", "0 0 1 * *", "*/10 * * * * *"])
def test_the_last_occurrence_of_a_week_is_found_in_a_few_steps(expression: str) -> None:
    trigger = Counted(cron(expression, tz="Europe/Berlin"), [])
    last = trigger.last(FROM, FROM + WEEK)
    assert len(trigger.asked) <= 42
    walked = walk(trigger, FROM, FROM + WEEK)
    assert last == (walked[-1] if walked else None)


MOMENTS = st.integers(0, 10_000)


@given(instants=st.sets(MOMENTS, min_size=1), after=MOMENTS, until=MOMENTS)
def test_counting_and_the_last_one_agree_with_walking(instants: set[int], after: int, until: int) -> None:
    trigger = At(tuple(instants))
    walked = walk(trigger, after, until)
    assert trigger.count(after, until) == len(walked)
    assert trigger.last(after, until) == (walked[-1] if walked else None)


@given(
    interval=st.integers(1_000, 5_000), start=st.none() | MOMENTS, length=st.none() | MOMENTS,
    after=MOMENTS, until=MOMENTS,
)  # fmt: skip
def test_counting_equal_intervals_agrees_with_walking(
    interval: int, start: int | None, length: int | None, after: int, until: int
) -> None:
    end = None if length is None else (start or 0) + length
    trigger = Every(interval=interval, start=start, end=end)
    walked = walk(trigger, after, until)
    assert trigger.count(after, until) == len(walked)
    if start is not None:
        assert trigger.last(after, until) == (walked[-1] if walked else None)


def test_counting_stops_at_the_end_of_time() -> None:
    assert Every(interval=SECOND, start=LATEST).count(0, 2 * LATEST) == 1
