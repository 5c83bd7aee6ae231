from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime import cron, every
from duetime.model import forecast as looking
from duetime.model.forecast import MOST_WALKED_IN_ALL, ScheduleLoad, forecast_load
from duetime.model.time import DAY, HOUR, MINUTE, Instant, from_datetime
from duetime.model.triggers.base import Trigger

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
START = from_datetime(MONDAY)


class Counted(Trigger):
    """Every so often, with a count of what it was asked."""

    calls = 0

    def __init__(self, interval: int, *, countable: bool = True) -> None:
        self.interval = interval
        self.countable = countable

    def after(self, instant: Instant) -> Instant | None:
        Counted.calls += 1
        return (instant // self.interval + 1) * self.interval

    def count(self, after: Instant, until: Instant) -> int | None:
        Counted.calls += 1
        return until // self.interval - after // self.interval if self.countable else None

    def describe(self) -> str:
        return ""

    def to_spec(self) -> dict[str, object]:
        return {}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Counted.calls = 0


def plan(name: str, trigger: Trigger, *, since: Instant = 0, most: int | None = None) -> ScheduleLoad:
    return ScheduleLoad(name=name, trigger=trigger, same=repr(trigger), since=since, most=most)


def test_each_job_is_found_in_the_minute_it_falls_due() -> None:
    found = forecast_load(
        [plan("a", cron("30 3 * * *")), plan("b", cron("30 3 * * *")), plan("c", cron("15 * * * *"))],
        start=START,
        length=DAY,
    )
    assert found.jobs == sum(found.minutes) == 2 + 24
    assert found.minutes[3 * 60 + 30] == 2
    assert [n for n, jobs in enumerate(found.minutes) if jobs == 1] == [hour * 60 + 15 for hour in range(24)]


def test_a_time_that_is_the_start_has_passed_and_one_that_is_the_end_still_counts() -> None:
    found = forecast_load([plan("a", cron("0 0 * * *"))], start=START, length=DAY)
    assert (found.jobs, found.minutes[0], found.minutes[-1]) == (1, 0, 1)


def test_what_waits_for_the_end_of_a_pause_counts_from_there() -> None:
    found = forecast_load(
        [plan("a", every("1h", start=MONDAY), since=START + 20 * HOUR)], start=START, length=DAY
    )
    assert found.jobs == 4


@pytest.mark.parametrize("interval", ["1h", "1s"])
def test_no_more_jobs_come_than_a_schedule_may_still_make(
    interval: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "MOST_WALKED_IN_ALL", 5)
    [group] = forecast_load(
        [plan("a", every(interval, start=MONDAY), most=6)], start=START, length=DAY
    ).groups
    assert (group.comes, group.cut) == (6, False)


def test_what_comes_too_often_is_counted_by_the_hour_and_spread_over_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(looking, "MOST_WALKED_IN_ALL", 20)
    office = cron("*/5 9-10 * * *")
    found = forecast_load([plan("often", office), plan("rare", cron("0 3 * * *"))], start=START, length=DAY)
    rare, often = found.groups
    assert (rare.names, len(rare.due)) == (("rare",), 1)
    assert (often.names, often.due, often.comes) == (("often",), (), 24)
    assert found.jobs == 25
    assert sum(found.minutes) == pytest.approx(25)
    assert found.minutes[9 * 60 : 11 * 60] == (24 / 120,) * 120


def test_what_cannot_be_counted_is_walked_as_far_as_the_steps_go_and_said_to_be_cut() -> None:
    found = forecast_load([plan("a", Counted(1_000, countable=False))], start=START, length=DAY)
    assert (found.jobs, found.cut) == (MOST_WALKED_IN_ALL, True)
    whole = forecast_load([plan("a", Counted(HOUR, countable=False))], start=START, length=DAY)
    assert (whole.jobs, whole.cut) == (24, False)


@pytest.mark.parametrize("countable", [True, False])
@pytest.mark.parametrize("interval", [DAY, MINUTE])
def test_ten_thousand_different_rules_take_a_bounded_number_of_steps(
    interval: int, monkeypatch: pytest.MonkeyPatch, *, countable: bool
) -> None:
    rules, steps, pieces, least = 10_000, 20_000, 30_000, 3
    monkeypatch.setattr(looking, "MOST_WALKED_IN_ALL", steps)
    monkeypatch.setattr(looking, "MOST_PERIODS_COUNTED", pieces)
    monkeypatch.setattr(looking, "LEAST_WALK", least)
    plans = [plan(f"n{n}", Counted(interval + n, countable=countable)) for n in range(rules)]
    forecast_load(plans, start=START, length=7 * DAY)
    # Each is counted, and asked once more than it is walked.
    assert Counted.calls <= 2 * rules + (steps + pieces if countable else max(steps, least * rules))


def test_a_rule_that_thousands_share_is_asked_as_often_as_that_of_one() -> None:
    shared = Counted(HOUR)
    forecast_load([plan("a", shared)], start=START, length=DAY)
    alone, Counted.calls = Counted.calls, 0
    found = forecast_load([plan(f"n{n}", shared) for n in range(5_000)], start=START, length=DAY)
    assert (Counted.calls, found.jobs) == (alone, 24 * 5_000)
