from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from duetime.errors import InvalidTime, InvalidTrigger
from duetime.model.time import LATEST, from_datetime, to_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.every import CalendarSteps, Every, every
from duetime.model.triggers.preview import clock_change_note
from duetime.model.triggers.specs import trigger_from_spec
from tests.support.profiles import tries
from tests.support.triggers import BEGIN, INSTANTS, ZONES, moment, walk

BERLIN = ZoneInfo("Europe/Berlin")


def told(trigger: Trigger, after: str, count: int) -> list[str]:
    found = walk(trigger, from_datetime(moment(after)), most=count)
    return [f"{to_datetime(due).astimezone(ZoneInfo(trigger.tz)):%Y-%m-%d %H:%M}" for due in found]


def test_the_31st_stays_the_31st() -> None:
    trigger = every(months=1, start=moment("2025-01-31T09:00"))
    assert told(trigger, "2025-01-01", 6) == [
        "2025-01-31 09:00", "2025-02-28 09:00", "2025-03-31 09:00",
        "2025-04-30 09:00", "2025-05-31 09:00", "2025-06-30 09:00",
    ]  # fmt: skip


def test_months_without_the_day_can_be_left_out() -> None:
    trigger = every(months=1, start=moment("2025-01-31T09:00"), missing="skip")
    assert told(trigger, "2025-01-31T09:00", 3) == [
        "2025-03-31 09:00",
        "2025-05-31 09:00",
        "2025-07-31 09:00",
    ]


def test_a_leap_day_comes_in_leap_years_or_on_the_28th() -> None:
    start = moment("2096-02-29T00:00")
    assert told(every(years=1, start=start, missing="skip"), "2096-03-01", 2) == [
        "2104-02-29 00:00",
        "2108-02-29 00:00",
    ]
    assert told(every(years=1, start=start), "2096-03-01", 1) == ["2097-02-28 00:00"]


def test_it_keeps_the_wall_time_when_clocks_change() -> None:
    trigger = every(months=1, start=datetime(2025, 1, 30, 2, 30, tzinfo=BERLIN))
    assert trigger.tz == "Europe/Berlin"
    # On 30 March 2025 there is no 2:30; it is made up for at 3:00.
    assert told(trigger, "2025-02-01", 3) == ["2025-02-28 02:30", "2025-03-30 03:00", "2025-04-30 02:30"]


def test_a_wall_time_that_comes_twice_counts_once() -> None:
    trigger = every(months=1, start=datetime(2025, 9, 26, 2, 30, tzinfo=BERLIN))
    found = walk(trigger, from_datetime(moment("2025-10-01")), most=2)
    assert to_datetime(found[0]) == moment("2025-10-26T00:30")
    assert to_datetime(found[1]) == moment("2025-11-26T01:30")


def test_a_start_in_the_second_of_two_equal_hours_is_the_first_occurrence_all_the_same() -> None:
    start = datetime(2025, 10, 26, 2, 30, fold=1, tzinfo=BERLIN)
    trigger = every(months=1, start=start)
    assert trigger.next_after(start - timedelta(days=1)) == start.astimezone(UTC)
    assert trigger.next_after(start) == datetime(2025, 11, 26, 2, 30, tzinfo=BERLIN)


@pytest.mark.parametrize("fold", [0, 1])
def test_a_start_in_a_gap_comes_right_after_it_and_keeps_its_wall_time(fold: int) -> None:
    trigger = every(months=1, start=datetime(2025, 3, 30, 2, 30, 0, 250_000, fold=fold, tzinfo=BERLIN))
    assert told(trigger, "2025-01-01", 3) == ["2025-03-30 03:00", "2025-04-30 02:30", "2025-05-30 02:30"]
    assert trigger.start == from_datetime(moment("2025-03-30T01:00:00.25"))
    assert trigger.describe() == "every month, from 2025-03-30 02:30:00, Europe/Berlin"
    assert trigger_from_spec(trigger.to_spec()) == trigger
    assert told(trigger_from_spec(trigger.to_spec()), "2025-01-01", 3) == told(trigger, "2025-01-01", 3)
    note = clock_change_note(trigger, trigger.start)
    assert note == "02:30 does not exist on this day (clocks go forward); runs at 03:00"


def test_the_wall_time_of_a_start_in_another_zone_is_that_of_its_instant() -> None:
    start = datetime(2025, 3, 30, 2, 30, tzinfo=BERLIN)
    trigger = every(months=1, start=start, tz="Asia/Tokyo")
    assert told(trigger, "2025-01-01", 2) == ["2025-03-30 10:30", "2025-04-30 10:30"]


def test_fractions_of_a_second_ride_along() -> None:
    start = moment("2025-01-31T09:00:00.250001")
    trigger = every(months=1, start=start)
    assert trigger.next_after(start) == moment("2025-02-28T09:00:00.250001")
    assert trigger.next_after(moment("2025-02-28T09:00:00.25")) == moment("2025-02-28T09:00:00.250001")


def test_a_zone_that_is_given_goes_before_that_of_the_start() -> None:
    assert every(months=1, start=datetime(2025, 1, 1, tzinfo=BERLIN), tz="Asia/Tokyo").tz == "Asia/Tokyo"
    assert every(months=1, start=datetime(2025, 1, 1, tzinfo=UTC)).tz == "UTC"
    assert every(months=1).tz == "UTC"


def test_without_a_start_an_anchor_fixes_the_day_once() -> None:
    trigger = every(months=1).anchored(from_datetime(moment("2025-01-31T09:00")))
    assert told(trigger, "2025-01-31T09:00", 2) == ["2025-02-28 09:00", "2025-03-31 09:00"]
    assert trigger.anchored(5) == trigger
    assert every(months=1).next_after(moment("2025-01-31T09:00")) == moment("2025-02-28T09:00")


def test_the_end_is_the_last_moment_that_can_be_due() -> None:
    trigger = every(months=1, start=moment("2025-01-31T09:00"), end=moment("2025-03-31T09:00"))
    assert told(trigger, "2025-01-01", 9)[-1] == "2025-03-31 09:00"


def test_time_has_an_end() -> None:
    assert every(months=1).after(LATEST) is None
    assert CalendarSteps(months=1_200, start=BEGIN).after(LATEST - 1) is None
    assert CalendarSteps(months=1, start=LATEST).after(LATEST) is None


@tries(0.8)
@given(
    start=INSTANTS, months=st.integers(1, 30), tz=ZONES,
    missing=st.sampled_from(["last", "skip"]), after=st.integers(0, 100),
)  # fmt: skip
def test_every_step_is_computed_from_the_start(
    start: int, months: int, tz: str, missing: Literal["last", "skip"], after: int
) -> None:
    trigger = CalendarSteps(months=months, start=start, tz=tz, missing=missing)
    begin = to_datetime(start).astimezone(ZoneInfo(tz))
    expected = []
    for step in range(1, 40):
        year, month = divmod(begin.year * 12 + begin.month - 1 + step * months, 12)
        length = monthrange(year, month + 1)[1]
        if begin.day <= length or missing == "last":
            expected.append((year, month + 1, min(begin.day, length)))
    found = [to_datetime(due).astimezone(ZoneInfo(tz)) for due in walk(trigger, start, most=len(expected))]
    assert [(due.year, due.month, due.day) for due in found] == expected
    assert trigger_from_spec(trigger.to_spec()) == trigger


@pytest.mark.parametrize(
    "options",
    [
        {"months": 0},
        {"months": -1},
        {"months": 1.5},
        {"months": True},
        {"months": "1"},
        {"months": 1_201},
        {"years": 101},
        {"years": 0},
        {"years": 1, "months": -1},
        {"months": 10**5_000},
        {"months": 1, "days": 1},
        {"months": 1, "interval": "1d"},
        {"months": 1, "times": 0},
        {"months": 1, "missing": "first"},
        {"months": 1, "tz": "Mars/Olympus"},
        {"months": 1, "tz": ""},
        {"months": 1, "start": moment("2025-01-02"), "end": moment("2025-01-01")},
        {"interval": "1d", "tz": "UTC"},
        {"days": 1, "missing": "last"},
    ],
)
def test_a_bad_step_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidTrigger):
        every(**options)


@pytest.mark.parametrize("name", ["start", "end"])
def test_a_start_or_end_must_be_aware(name: str) -> None:
    with pytest.raises(InvalidTime, match=f"^{name} "):
        every(months=1, **{name: datetime(2025, 1, 1)})  # type: ignore[call-overload]  # noqa: DTZ001 - the mistake under test


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        (every(months=1), "every month, UTC"),
        (every(years=1), "every year, UTC"),
        (every(months=18), "every 1 year 6 months, UTC"),
        (every(years=2, tz="Asia/Tokyo"), "every 2 years, Asia/Tokyo"),
        (
            every(months=3, start=datetime(2025, 1, 31, 9, tzinfo=BERLIN), times=4, missing="skip"),
            "every 3 months, from 2025-01-31 09:00:00, Europe/Berlin, 4 times, where the month has that day",
        ),
        (
            every(months=1, end=moment("2030-01-01"), times=1),
            "every month, UTC, until 2030-01-01 00:00:00 UTC, 1 time",
        ),
    ],
)
def test_it_is_said_in_english(trigger: CalendarSteps, text: str) -> None:
    assert trigger.describe() == text


def test_elapsed_units_and_calendar_units_are_two_kinds() -> None:
    assert isinstance(every(days=30), Every)
    assert isinstance(every(years=1, months=6), CalendarSteps)
