from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from duetime.calendars import weekends
from duetime.model.time import SECOND, Instant, from_datetime
from duetime.model.triggers import zones
from duetime.model.triggers.at import at
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from duetime.model.triggers.preview import clock_change_note
from duetime.model.triggers.rrule import rrule
from duetime.model.triggers.zones import Zone

FORWARD = "on this day (clocks go forward)"
BACK = "comes twice on this day (clocks go back)"


def instant(text: str) -> Instant:
    return from_datetime(datetime.fromisoformat(text))


@pytest.mark.covers("clock-changes")
@pytest.mark.parametrize(
    ("tz", "expression", "occurrence", "expected"),
    [
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2025-03-30T03:00+02:00",
            f"02:30 does not exist {FORWARD}; runs at 03:00",
        ),
        (
            "Europe/Berlin",
            "15 30 2 * * *",
            "2025-03-30T03:00+02:00",
            f"02:30:15 does not exist {FORWARD}; runs at 03:00",
        ),
        (
            "Europe/Berlin",
            "0,30 2 * * *",
            "2025-03-30T03:00+02:00",
            f"02:00 and 1 more do not exist {FORWARD}; they run once, at 03:00",
        ),
        (
            "Europe/Berlin",
            "5-59/5 2 * * *",
            "2025-03-30T03:00+02:00",
            f"02:05 and 10 more do not exist {FORWARD}; they run once, at 03:00",
        ),
        (
            "Europe/Berlin",
            "30 * * * *",
            "2025-03-30T03:30+02:00",
            f"02:30 does not exist {FORWARD} and is left out",
        ),
        (
            "Europe/Berlin",
            "* * * * * *",
            "2025-03-30T03:00+02:00",
            f"02:00 and 3,599 more do not exist {FORWARD} and are left out",
        ),
        (
            "Europe/Berlin",
            "*/30 2 * * *",
            "2025-03-31T02:00+02:00",
            "2025-03-30 02:00 and 1 more do not exist (clocks go forward) and are left out",
        ),
        (
            "America/Sao_Paulo",
            "0 0 * * *",
            "2018-11-04T01:00-02:00",
            f"00:00 does not exist {FORWARD}; runs at 01:00",
        ),
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2025-10-05T02:30+11:00",
            f"02:15 does not exist {FORWARD}; runs at 02:30",
        ),
        (
            "Pacific/Apia",
            "0 9 * * *",
            "2011-12-31T00:00+14:00",
            "2011-12-30 09:00 does not exist (clocks go forward); runs at 00:00",
        ),
        ("Europe/Berlin", "30 2 * * *", "2025-10-26T02:30+02:00", f"02:30 {BACK}; runs the first time only"),
        (
            "Europe/Berlin",
            "30 * * * *",
            "2025-10-26T02:30+02:00",
            f"02:30 {BACK}; both run, this is the first",
        ),
        (
            "Europe/Berlin",
            "30 * * * *",
            "2025-10-26T02:30+01:00",
            f"02:30 {BACK}; both run, this is the second",
        ),
        ("Europe/Berlin", "@hourly", "2025-10-26T02:00+02:00", f"02:00 {BACK}; both run, this is the first"),
        (
            "America/Sao_Paulo",
            "30 23 * * *",
            "2018-02-17T23:30-02:00",
            f"23:30 {BACK}; runs the first time only",
        ),
        (
            "Antarctica/Troll",
            "30 1,2 * * *",
            "2025-10-26T01:30+02:00",
            f"01:30 {BACK}; runs the first time only",
        ),
        ("Europe/Berlin", "30 2 * * *", "2025-03-29T02:30+01:00", None),
        ("Europe/Berlin", "30 2 * * *", "2025-03-31T02:30+02:00", None),
        ("Europe/Berlin", "0 3 * * *", "2025-03-30T03:00+02:00", None),
        ("Europe/Berlin", "@hourly", "2025-03-30T04:00+02:00", None),
        ("Europe/Berlin", "@hourly", "2025-10-26T01:00+02:00", None),
        ("Europe/Berlin", "@hourly", "2025-10-26T03:00+01:00", None),
        ("Europe/Berlin", "0 0 * * *", "2025-10-26T00:00+02:00", None),
        ("UTC", "* * * * *", "2025-03-30T02:00+00:00", None),
    ],
)
def test_an_occurrence_says_what_a_clock_change_does_to_it(
    tz: str, expression: str, occurrence: str, expected: str | None
) -> None:
    rule = cron(expression, tz=tz)
    assert rule.after(instant(occurrence) - 1) == instant(occurrence), "the table names no occurrence"
    assert clock_change_note(rule, instant(occurrence)) == expected


def test_a_clock_set_back_behind_the_edge_of_a_kept_block_is_told_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change = instant("2025-10-26T02:00+01:00") // SECOND
    # A block that ends ten minutes before the change, in the middle of the hour that will be shown again.
    monkeypatch.setattr(zones, "_BLOCK", (change - 600) // 50)
    rule = cron("30 2 * * *", tz=ZoneInfo("Europe/Berlin"))
    object.__setattr__(rule, "place", Zone(ZoneInfo("Europe/Berlin")))
    assert (
        clock_change_note(rule, instant("2025-10-26T02:30+02:00"))
        == f"02:30 {BACK}; runs the first time only"
    )


def test_what_is_no_occurrence_has_no_note() -> None:
    assert (
        clock_change_note(cron("30 2 * * *", tz="Europe/Berlin"), instant("2025-03-30T03:01+02:00")) is None
    )


def test_elapsed_time_and_named_moments_know_no_clock_changes() -> None:
    gap_end = datetime.fromisoformat("2025-03-30T03:00+02:00")
    assert clock_change_note(at(gap_end), instant("2025-03-30T03:00+02:00")) is None
    assert clock_change_note(every("1h", start=gap_end), instant("2025-03-30T03:00+02:00")) is None


@pytest.mark.parametrize(
    ("months", "start", "occurrence", "expected"),
    [
        (1, "2025-02-28T02:30+01:00", "2025-03-28T02:30+01:00", None),
        (
            1,
            "2025-01-30T02:30+01:00",
            "2025-03-30T03:00+02:00",
            f"02:30 does not exist {FORWARD}; runs at 03:00",
        ),
        (1, "2025-01-30T03:00+01:00", "2025-03-30T03:00+02:00", None),
        (1, "2025-01-26T02:30+01:00", "2025-10-26T02:30+02:00", f"02:30 {BACK}; runs the first time only"),
    ],
)
def test_steps_of_months_say_it_too(months: int, start: str, occurrence: str, expected: str | None) -> None:
    rule = every(months=months, start=datetime.fromisoformat(start), tz="Europe/Berlin")
    assert rule.after(instant(occurrence) - 1) == instant(occurrence), "the table names no occurrence"
    assert clock_change_note(rule, instant(occurrence)) == expected


@pytest.mark.parametrize(
    ("rule", "occurrence", "expected"),
    [
        ("FREQ=DAILY", "2025-03-30T03:00+02:00", f"02:30 does not exist {FORWARD}; runs at 03:00"),
        ("FREQ=DAILY;BYHOUR=3;BYMINUTE=0", "2025-03-30T03:00+02:00", None),
        ("FREQ=DAILY", "2025-10-26T02:30+02:00", f"02:30 {BACK}; runs the first time only"),
        ("FREQ=DAILY", "2025-10-27T02:30+01:00", None),
    ],
)
def test_recurrence_rules_say_it_too(rule: str, occurrence: str, expected: str | None) -> None:
    trigger = rrule(rule, start=datetime.fromisoformat("2025-01-01T02:30+01:00"), tz="Europe/Berlin")
    assert trigger.after(instant(occurrence) - 1) == instant(occurrence), "the table names no occurrence"
    assert clock_change_note(trigger, instant(occurrence)) == expected


def test_a_compound_tells_the_note_of_the_part_that_comes() -> None:
    hourly, nightly = every("1h"), cron("30 2 * * *", tz="Europe/Berlin").jitter("5m")
    rule = hourly | cron("0 3 * * *", tz="Europe/Berlin") | nightly
    assert (
        clock_change_note(rule, instant("2025-03-30T03:00+02:00"))
        == f"02:30 does not exist {FORWARD}; runs at 03:00"
    )
    assert clock_change_note(rule, instant("2025-03-31T03:00+02:00")) is None
    assert clock_change_note(nightly - weekends(), instant("2025-03-30T03:00+02:00")) is None
