"""How the load of many rules is found in a bounded number of steps."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime import cron, every
from duetime.model.schedule import forecast as looking
from duetime.model.schedule.forecast import MOST_STEPS, SharedRule, load_by_minute
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


def rule(trigger: Trigger, *names: str, after: Instant = START, most: int | None = None) -> SharedRule:
    return SharedRule(trigger=trigger, names=[*names] or ["a"], after=after, most=most)


def load(*rules: SharedRule, length: int = DAY) -> tuple[list[float], list[SharedRule], bool]:
    minutes, counted, whole = load_by_minute(rules, start=START, end=START + length)
    assert [*minutes] == [*range(START // MINUTE, (START + length) // MINUTE + 1)]
    return [*minutes.values()], counted, whole


def test_each_job_is_found_in_the_minute_it_falls_due() -> None:
    minutes, counted, whole = load(rule(cron("30 3 * * *"), "a", "b"), rule(cron("15 * * * *"), "c"))
    assert (sum(minutes), counted, whole) == (2 + 24, [], True)
    assert minutes[3 * 60 + 30] == 2
    assert [n for n, jobs in enumerate(minutes) if jobs == 1] == [hour * 60 + 15 for hour in range(24)]


def test_a_time_that_is_the_start_has_passed_and_one_that_is_the_end_still_counts() -> None:
    minutes, _, _ = load(rule(cron("0 0 * * *")))
    assert (sum(minutes), minutes[0], minutes[-1]) == (1, 0, 1)


def test_what_waits_for_the_end_of_a_pause_counts_from_there() -> None:
    minutes, _, _ = load(rule(every("1h", start=MONDAY), after=START + 20 * HOUR))
    assert sum(minutes) == 4


def test_what_has_a_jitter_is_found_where_it_falls_due() -> None:
    rules = [rule(cron("0 3 * * *").jitter("30m").seeded(f"n{n}"), f"n{n}") for n in range(300)]
    minutes, _, _ = load(*rules)
    busy = [n for n, jobs in enumerate(minutes) if jobs]
    assert (busy[0], busy[-1], sum(minutes)) == (180, 209, 300)


@pytest.mark.parametrize("interval", ["1h", "1s"])
def test_no_more_jobs_come_than_a_schedule_may_still_make(
    interval: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "MOST_STEPS", 5)
    minutes, _, whole = load(rule(every(interval, start=MONDAY), most=6))
    assert sum(minutes) == pytest.approx(6)
    assert whole


def test_what_comes_too_often_is_counted_by_the_hour_and_spread_over_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(looking, "MOST_STEPS", 27)
    office, rare = rule(cron("*/4 9-10 * * *"), "often"), rule(cron("0 3 * * *"), "rare")
    minutes, counted, whole = load(office, rare)
    assert (counted, whole) == ([office], True)
    assert sum(minutes) == pytest.approx(31)
    assert minutes[9 * 60 : 11 * 60] == [pytest.approx(30 / 120)] * 120
    monkeypatch.setattr(looking, "MOST_STEPS", 31)
    assert load(rule(cron("*/4 9-10 * * *")), rule(cron("0 3 * * *")))[1] == []


def test_what_cannot_be_counted_is_walked_as_far_as_the_steps_go_and_said_to_be_cut() -> None:
    minutes, counted, whole = load(rule(Counted(1_000, countable=False)))
    assert (sum(minutes), counted, whole) == (MOST_STEPS, [], False)
    minutes, counted, whole = load(rule(Counted(HOUR, countable=False)))
    assert (sum(minutes), counted, whole) == (24, [], True)


@pytest.mark.timeout(240)  # A busy machine is slow at so much arithmetic.
@pytest.mark.parametrize("countable", [True, False])
@pytest.mark.parametrize("interval", [DAY, MINUTE])
def test_ten_thousand_different_rules_take_a_bounded_number_of_steps(
    interval: int, monkeypatch: pytest.MonkeyPatch, *, countable: bool
) -> None:
    rules, steps = 10_000, 30_000
    monkeypatch.setattr(looking, "MOST_STEPS", steps)
    load(*(rule(Counted(interval + n, countable=countable)) for n in range(rules)), length=7 * DAY)
    # Each is counted, and asked once more than it is walked.
    assert Counted.calls <= 2 * rules + steps


def test_rules_that_were_counted_over_many_hours_lose_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_STEPS", 5)
    minutes, _, _ = load(rule(Counted(MINUTE), "a", "b"))
    assert sum(minutes) == pytest.approx(2 * 24 * 60)


def test_a_rule_that_thousands_share_is_asked_as_often_as_that_of_one() -> None:
    load(rule(Counted(HOUR)))
    alone, Counted.calls = Counted.calls, 0
    minutes, _, _ = load(rule(Counted(HOUR), *(f"n{n}" for n in range(5_000))))
    assert (Counted.calls, sum(minutes)) == (alone, 24 * 5_000)
