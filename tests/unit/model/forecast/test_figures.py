from __future__ import annotations

from datetime import UTC, datetime

from duetime import cron, every
from duetime.model.forecast import LoadForecast, ScheduleLoad, busiest, by_hour, collisions, forecast_load
from duetime.model.time import DAY, HOUR, MINUTE, from_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.zones import zone

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
START = from_datetime(MONDAY)


def surveyed(**triggers: Trigger) -> LoadForecast:
    plans = [
        ScheduleLoad(name=name, trigger=rule, same=repr(rule), since=0) for name, rule in triggers.items()
    ]
    return forecast_load(plans, start=START, length=7 * DAY)


def test_hours_are_those_of_the_zones_wall_clock() -> None:
    found = dict(by_hour(surveyed(rule=cron("45 * * * *")), zone("Asia/Kolkata")))
    assert found[START + 30 * MINUTE] == 1
    assert set(found) == {START - 30 * MINUTE + n * HOUR for n in range(7 * 24 + 1)}


def test_an_hour_that_comes_twice_is_two_hours() -> None:
    start = from_datetime(datetime(2026, 10, 24, 22, tzinfo=UTC))
    found = forecast_load(
        [ScheduleLoad(name="a", trigger=cron("* * * * *"), same="", since=0)],
        start=start,
        length=25 * HOUR - 1,
    )
    hours = by_hour(found, zone("Europe/Berlin"))
    assert len(hours) == 25
    assert {jobs for _, jobs in hours[1:]} == {60}


def test_the_busiest_minutes_come_first_with_who_makes_them() -> None:
    found = surveyed(b=cron("0 * * * *"), a=cron("0 3 * * *"), c=cron("0 3 * * *"))
    first, *_, last = busiest(found, limit=8, names=2)
    assert (first.at, first.jobs, first.schedules) == (START + 3 * HOUR, 3, 3)
    assert first.names == ("a", "b")
    assert (last.jobs, last.names) == (1, ("b",))


def test_schedules_collide_when_they_start_in_the_same_second_the_most_frequent_first() -> None:
    found = surveyed(
        backup=cron("0 3 * * *"),
        report=cron("0 3 * * *"),
        hourly=cron("0 * * * *"),
        quarter=every("15m", start=MONDAY),
        alone=cron("17 5 * * *"),
        second=cron("1 0 3 * * *"),
    )
    often, nightly = collisions(found, limit=10, names=10)
    assert (often.names, often.times, often.first) == (("hourly", "quarter"), 161, START + HOUR)
    assert (nightly.names, nightly.times) == (("backup", "hourly", "quarter", "report"), 7)
    assert nightly.first == START + 3 * HOUR


def test_few_collisions_are_told_with_few_names_and_all_are_counted() -> None:
    found = surveyed(
        **{f"n{n}": cron("0 3 * * *") for n in range(50)}, a=cron("0 4 * * *"), b=cron("0 4 * * *")
    )
    [most] = collisions(found, limit=1, names=3)
    assert (most.schedules, most.names) == (50, ("n0", "n1", "n10"))


def test_a_schedule_does_not_collide_with_itself() -> None:
    assert collisions(surveyed(fast=every("100ms", start=MONDAY, end=datetime(2026, 11, 16, 0, 1, tzinfo=UTC))),
                      limit=10, names=10) == []  # fmt: skip
