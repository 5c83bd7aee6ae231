"""`duetime schedules forecast`, `preview` and `backfill`."""

from __future__ import annotations

from tests.acceptance.kit import duetime, from_json
from tests.acceptance.schedules.kit import put


def test_the_load_to_come_is_shown_as_a_map_and_as_json() -> None:
    for name in ("nightly", "backup"):
        put(name)
    text = duetime("schedules", "forecast", "--days", "2", "--tz", "Europe/Riga").stdout
    assert text.startswith("4 jobs of 2 schedules from ")
    assert " 03:00  2 jobs: backup, nightly" in text
    values = from_json("schedules", "forecast", "--days", "2", "--tz", "Europe/Riga")
    assert [minute["jobs"] for minute in values["busiest"]] == [2, 2]
    assert values["advice"] in text
    assert sum(hour["jobs"] for hour in values["hours"]) == values["jobs"] == 4


def test_a_forecast_is_refused_for_no_days_and_for_no_zone() -> None:
    put()
    assert duetime("schedules", "forecast", "--days", "0").exit_code == 2
    assert "did you mean 'Europe/Riga'" in duetime("schedules", "forecast", "--tz", "Europe/Rigga").stderr


def test_times_to_come_are_shown_with_what_the_clock_does_to_them() -> None:
    put("early", "shop.slow", "--cron", "30 2 * * *", "--tz", "Europe/Berlin")
    table = duetime(
        "schedules", "preview", "early", "--after", "2030-03-30T12:00:00Z", "--count", "1"
    ).stdout.splitlines()
    assert table[0].split() == ["NEXT", "NOTE"]
    assert "2030-03-31 03:00:00+02:00" in table[1]
    assert "02:30 does not exist on this day" in table[1]


def test_what_was_missed_is_made_up_for_once_and_can_be_counted_first() -> None:
    put("hourly", "shop.slow", "--cron", "0 * * * *")
    stretch = ("--start", "2025-01-01T00:00:00Z", "--end", "2025-01-01T23:59:00Z")
    fill = ("schedules", "backfill", "hourly", *stretch)
    assert duetime(*fill, "--dry-run").stdout == (
        "hourly  24 of 24 occurrences would be enqueued, 0 had a job\n"
    )
    assert from_json("jobs", "list", "--schedule", "hourly") == []
    assert from_json(*fill)["enqueued"] == 24
    assert duetime(*fill).stdout == "hourly  0 of 24 occurrences enqueued, 24 had a job\n"
    assert len(from_json("jobs", "list", "--schedule", "hourly")) == 24
