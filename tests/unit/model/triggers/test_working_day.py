from __future__ import annotations

from datetime import date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from duetime import calendars, cron, working_day
from duetime.errors import InvalidTrigger
from duetime.model.time import LATEST, from_datetime, to_datetime
from duetime.model.triggers.base import NoOccurrence, Trigger, check_comes
from duetime.model.triggers.preview import clock_change_note
from duetime.model.triggers.specs import trigger_from_spec
from tests.support.profiles import tries
from tests.support.triggers import INSTANTS, ZONES, moment, walk

RIGA = "Europe/Riga"
CLOSED = calendars.days_off([date(2030, 1, 1), date(2030, 5, 1), date(2030, 5, 31), date(2030, 12, 31)])


def told(trigger: Trigger, after: str, count: int = 3) -> list[str]:
    found = walk(trigger, from_datetime(moment(after)), most=count)
    return [f"{to_datetime(due).astimezone(ZoneInfo(RIGA)):%a %m-%d %H:%M}" for due in found]


@pytest.mark.parametrize(
    ("nth", "expected"),
    [
        (1, ["Wed 01-02 09:00", "Fri 02-01 09:00", "Fri 03-01 09:00", "Mon 04-01 09:00", "Thu 05-02 09:00"]),
        (3, ["Fri 01-04 09:00", "Tue 02-05 09:00", "Tue 03-05 09:00", "Wed 04-03 09:00", "Mon 05-06 09:00"]),
        (-1, ["Thu 01-31 09:00", "Thu 02-28 09:00", "Fri 03-29 09:00", "Tue 04-30 09:00", "Thu 05-30 09:00"]),
        (-2, ["Wed 01-30 09:00", "Wed 02-27 09:00", "Thu 03-28 09:00", "Mon 04-29 09:00", "Wed 05-29 09:00"]),
        # Most months have fewer of them.
        (22, ["Thu 01-31 09:00", "Tue 04-30 09:00", "Tue 07-30 09:00", "Fri 08-30 09:00", "Wed 10-30 09:00"]),
    ],
)
def test_it_is_the_nth_day_of_the_month_that_is_not_off(nth: int, expected: list[str]) -> None:
    assert told(working_day(nth, "09:00", off=CLOSED, tz=RIGA), "2030-01-01", 5) == expected


def test_saturday_and_sunday_are_off_unless_it_is_said_otherwise() -> None:
    assert told(working_day(1, time(7), tz=RIGA), "2030-05-15", 1) == ["Mon 06-03 07:00"]
    friday = calendars.weekdays("FRI", "SAT")
    assert told(working_day(1, "07:00:30", off=friday, tz=ZoneInfo(RIGA)), "2030-05-15", 1) == [
        "Sun 06-02 07:00"
    ]


def test_a_time_in_a_gap_is_made_up_for_and_one_that_comes_twice_counts_once() -> None:
    sundays = calendars.weekdays("MON-SAT")
    rule = working_day(-1, "03:30", off=sundays, tz=RIGA)
    found = [to_datetime(one) for one in walk(rule, from_datetime(moment("2030-03-15")), most=8)]
    assert (found[0], found[7]) == (moment("2030-03-31T01:00"), moment("2030-10-27T00:30"))
    notes = [clock_change_note(rule, from_datetime(found[number])) for number in (0, 7)]
    assert notes == [
        "03:30 does not exist on this day (clocks go forward); runs at 04:00",
        "03:30 comes twice on this day (clocks go back); runs the first time only",
    ]


@tries(0.5)
@given(nth=st.integers(-31, 31).filter(bool), tz=ZONES, after=INSTANTS, second=st.integers(0, 86_399))
def test_it_is_one_of_the_fixed_times_of_cron(nth: int, tz: str, after: int, second: int) -> None:
    clock = time(second // 3600, second // 60 % 60, second % 60)
    daily = cron(f"{clock:%S %M %H} * * *", tz=tz) - CLOSED
    by_month: dict[tuple[int, int], list[int]] = {}
    for occurrence in walk(daily, after - 40 * 86_400_000_000, most=140):
        # A time that a gap over midnight swallows belongs to its own day.
        local = to_datetime(occurrence - 3_700_000_000 if second > 86_000 else occurrence).astimezone(
            ZoneInfo(tz)
        )
        by_month.setdefault((local.year, local.month), []).append(occurrence)
    whole = [*by_month.values()][1:-1]
    expected = [days[nth - (nth > 0)] for days in whole if len(days) >= abs(nth)]
    begin, end = whole[0][0] - 1, whole[-1][-1]
    assert walk(working_day(nth, clock, off=CLOSED, tz=tz), begin, until=end) == expected


def test_one_that_never_comes_is_no_endless_search_and_refused_for_a_schedule() -> None:
    rule = working_day(24, "09:00")
    now = from_datetime(moment("2030-01-01"))
    assert rule.next_after(moment("2030-01-01")) is None
    found = rule.first(now)
    assert isinstance(found, NoOccurrence)
    assert not found.proved
    with pytest.raises(InvalidTrigger, match="never comes"):
        check_comes(rule, now)
    assert working_day(1, "09:00").after(LATEST) is None


def test_it_combines_and_is_stored() -> None:
    quarter = working_day(-1, "18:00", off=CLOSED, tz=RIGA) & cron("0 18 * 3,6,9,12 *", tz=RIGA)
    assert told(quarter, "2030-01-01", 4) == [
        "Fri 03-29 18:00", "Fri 06-28 18:00", "Mon 09-30 18:00", "Mon 12-30 18:00",
    ]  # fmt: skip
    assert trigger_from_spec(quarter.to_spec()) == quarter
    assert working_day(2, "09:00").previous_before(moment("2030-05-15")) == moment("2030-05-02T09:00")


@pytest.mark.parametrize(
    ("nth", "said"),
    [(1, "first"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd"), (-1, "last"), (-2, "2nd to last")],
)
def test_it_is_said_in_english(nth: int, said: str) -> None:
    rule = working_day(nth, "09:00", off=calendars.weekends(), tz=RIGA)
    assert rule.describe() == (
        f"at 09:00 on the {said} working day of the month, {RIGA} (no work on Saturday and Sunday)"
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"nth": 0}, "nth must be a number from 1 to 31, or from -1 to -31 .* not 0"),
        ({"nth": 32}, "nth must be a number from 1 to 31, or from -1 to -31"),
        ({"nth": "1"}, "nth must be a number from 1 to 31, or from -1 to -31"),
        ({"at": "9"}, "at must be a time of day such as"),
        ({"at": "24:00"}, "at must be a second of the day"),
        ({"off": [date(2030, 1, 1)]}, r"off must be a calendar such as calendars\.days_off\(\)"),
        ({"off": calendars.blackout("12:00", "13:00")}, "a calendar of whole days such as"),
        ({"off": calendars.weekends(tz="Asia/Tokyo")}, "are those of Asia/Tokyo; say tz='Asia/Tokyo'"),
        ({"tz": "Mars/Olympus"}, "unknown time zone"),
    ],
)
def test_what_is_wrong_is_refused(arguments: dict[str, Any], problem: str) -> None:
    asked: dict[str, Any] = {"nth": 1, "at": "09:00"} | arguments
    with pytest.raises(InvalidTrigger, match=problem):
        working_day(**asked)


@pytest.mark.parametrize("missing", ["nth", "at", "calendar"])
def test_a_bad_spec_is_refused(missing: str) -> None:
    spec = working_day(1, "09:00").to_spec()
    for changed in ({key: value for key, value in spec.items() if key != missing}, spec | {missing: None}):
        with pytest.raises(InvalidTrigger):
            trigger_from_spec(changed)


def test_its_moment_is_that_of_the_zone() -> None:
    found = working_day(1, "00:30", tz="Asia/Tokyo").next_after(moment("2030-01-15"))
    assert found == datetime(2030, 2, 1, 0, 30, tzinfo=ZoneInfo("Asia/Tokyo"))
