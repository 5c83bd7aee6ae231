from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime import cron, every
from duetime.model.forecast import ScheduleLoad, forecast_load, hash_shift, load_peaks
from duetime.model.time import DAY, MINUTE, from_datetime
from duetime.model.triggers.base import Trigger

START = from_datetime(datetime(2026, 11, 16, tzinfo=UTC))


@pytest.mark.parametrize(
    "expression", ["0 3 * * *", "17 3 * * *", "@daily", "30 0 3 * * *", "*/15 * * * *", "0/20 4 * * *"]
)
@pytest.mark.parametrize("tz", ["UTC", "Asia/Kolkata"])
def test_what_is_told_about_h_is_where_h_puts_it(expression: str, tz: str) -> None:
    fixed = cron(expression, tz=tz)
    written = {
        "0 3 * * *": "H 3 * * *",
        "17 3 * * *": "H 3 * * *",
        "@daily": "H 0 * * *",
        "30 0 3 * * *": "30 H 3 * * *",
        "*/15 * * * *": "H/15 * * * *",
        "0/20 4 * * *": "H/20 4 * * *",
    }
    hashed = cron(written[expression], tz=tz).seeded("nightly")
    # From before the first one of the day, so that the same occurrence is meant.
    day = START - 19_800_000_000
    assert (due := fixed.after(day - 1)) is not None
    shift = hash_shift(fixed, "nightly")
    assert shift is not None
    assert hashed.after(day - 1) == due + shift * MINUTE


@pytest.mark.parametrize(
    "trigger",
    [cron("* * * * *"), cron("*/1 * * * *"), cron("H 3 * * *", seed="x"), cron("5,35 * * * *"), every("1h")],
)
def test_there_is_nothing_to_hash_where_no_single_minute_is_fixed(trigger: Trigger) -> None:
    assert hash_shift(trigger, "a") is None


def test_an_end_does_not_keep_a_schedule_from_being_spread() -> None:
    fixed = cron("0 3 * * *")
    ends = fixed.at_most(3).between(end=datetime(2030, 1, 1, tzinfo=UTC))
    assert hash_shift(ends, "a") == hash_shift(fixed, "a") is not None


def test_what_has_a_jitter_is_found_where_it_falls_due_and_takes_no_other() -> None:
    rules = [cron("0 3 * * *").jitter("30m").seeded(f"n{n}") for n in range(300)]
    plans = [ScheduleLoad(name=f"n{n}", trigger=rule, same=str(n), since=0) for n, rule in enumerate(rules)]
    found = forecast_load(plans, start=START, length=DAY)
    busy = [n for n, jobs in enumerate(found.minutes) if jobs]
    assert (busy[0], busy[-1], sum(found.minutes)) == (180, 209, 300)
    assert (load_peaks(found).jitterable, load_peaks(found).jittered) == (0, load_peaks(found).now)


def test_the_peak_is_told_as_it_is_and_as_it_would_be() -> None:
    plans = [
        ScheduleLoad(name=f"n{n}", trigger=cron("0 3 * * *"), same="nightly", since=0) for n in range(600)
    ] + [ScheduleLoad(name="minutely", trigger=cron("* * * * *"), same="minutely", since=0)]
    found = load_peaks(forecast_load(plans, start=START, length=DAY))
    assert (found.now, found.hashable, found.jitterable) == (601, 600, 600)
    # Ten in each minute on average, over the hour; one more comes every minute.
    assert 12 <= found.hashed <= 25
    assert found.jittered == 61


def test_nothing_would_change_where_nothing_can() -> None:
    plans = [
        ScheduleLoad(name="a", trigger=every("1m", start=datetime(2026, 1, 1, tzinfo=UTC)), same="", since=0)
    ]
    found = load_peaks(forecast_load(plans, start=START, length=DAY))
    assert (found.now, found.hashed, found.jittered) == (1, 1, 1)
    assert (found.hashable, found.jitterable) == (0, 0)


def test_nothing_is_told_of_nothing() -> None:
    assert load_peaks(forecast_load([], start=START, length=DAY)).now == 0
