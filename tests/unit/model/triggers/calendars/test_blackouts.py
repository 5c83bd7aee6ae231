from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from duetime import cron
from duetime.calendars import blackout
from duetime.errors import InvalidTime, InvalidTrigger
from duetime.model.time import from_datetime
from duetime.model.triggers.calendars import Calendar

FRIDAY = datetime(2030, 1, 4, tzinfo=UTC)


def hours(calendar: Calendar, day: datetime) -> list[int]:
    """The hours of a day that are excluded, by their beginning."""
    return [
        hour for hour in range(24) if calendar.until(from_datetime(day + timedelta(hours=hour))) is not None
    ]


def test_a_window_holds_every_day() -> None:
    dark = blackout("02:00", "04:00")
    assert hours(dark, FRIDAY) == hours(dark, FRIDAY + timedelta(days=99)) == [2, 3]


def test_a_window_may_go_on_into_the_next_day() -> None:
    assert hours(blackout("22:00", "06:00"), FRIDAY) == [0, 1, 2, 3, 4, 5, 22, 23]


def test_days_are_those_on_which_a_window_begins() -> None:
    dark = blackout("22:00", "02:00", days="FRI")
    assert hours(dark, FRIDAY - timedelta(days=1)) == []
    assert hours(dark, FRIDAY) == [22, 23]
    assert hours(dark, FRIDAY + timedelta(days=1)) == [0, 1]


def test_midnight_can_be_written_from_both_sides() -> None:
    assert hours(blackout("22:00", "24:00"), FRIDAY) == hours(blackout("22:00", "00:00"), FRIDAY) == [22, 23]
    assert hours(blackout("00:00", "24:00", days="FRI"), FRIDAY) == list(range(24))


def test_it_goes_by_the_wall_clock_when_that_changes() -> None:
    dark = blackout("02:00", "04:00", tz="Europe/Berlin")
    forward, back = datetime(2030, 3, 31, tzinfo=UTC), datetime(2030, 10, 27, tzinfo=UTC)
    # From 2:00 to 3:00 there is nothing to exclude; when 2:00 to 3:00 comes twice, both are.
    assert hours(dark, forward) == [1]
    assert hours(dark, back) == [0, 1, 2]


def test_what_is_excluded_before_a_change_of_the_clock_is_not_so_for_an_hour_too_long() -> None:
    dark = blackout("01:00", "04:00", tz="Europe/Berlin")
    change = datetime(2030, 3, 31, 1, tzinfo=UTC)
    # It is 1:30 in winter; the window ends at 4:00 in summer, which is an hour and a half later.
    end = dark.until(from_datetime(change - timedelta(minutes=30)))
    assert end is not None
    assert end <= from_datetime(change + timedelta(hours=1))
    rule = cron("15 * * * *", tz="Europe/Berlin") - dark
    assert rule.next_after(change - timedelta(minutes=30)) == datetime(2030, 3, 31, 2, 15, tzinfo=UTC)


def test_the_end_is_not_included() -> None:
    dark = blackout(time(2), "02:00:30")
    begin = from_datetime(FRIDAY + timedelta(hours=2))
    end = begin + 30_000_000
    assert [dark.until(at) for at in (begin - 1, begin, end - 1, end)] == [None, end, end, None]


@given(
    start=st.integers(0, 86_399),
    end=st.integers(0, 86_399),
    wall=st.integers(0, 86_399),
    day=st.integers(0, 400),
)
def test_a_window_excludes_what_lies_between_its_times(start: int, end: int, wall: int, day: int) -> None:
    if start == end:
        return
    dark = blackout(clock(start), clock(end))
    inside = start <= wall < end if start < end else wall >= start or wall < end
    at = from_datetime(FRIDAY + timedelta(days=day, seconds=wall))
    assert (dark.until(at) is not None) is inside
    assert (dark.why(at) is not None) is inside


def clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def test_a_blackout_between_two_moments_holds_once() -> None:
    dark = blackout(FRIDAY, FRIDAY + timedelta(days=2))
    begin, end = from_datetime(FRIDAY), from_datetime(FRIDAY + timedelta(days=2))
    assert [dark.until(at) for at in (begin - 1, begin, end - 1, end)] == [None, end, end, None]
    assert dark.why(begin) == (
        "2030-01-04 00:00:00 UTC lies in the blackout from 2030-01-04 00:00:00 until 2030-01-06 00:00:00 UTC"
    )
    assert dark.why(end) is None


def test_it_says_which_window() -> None:
    dark = blackout("22:00", "06:00", tz="Asia/Tokyo")
    at = datetime(2030, 1, 4, 23, 30, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert dark.why(from_datetime(at)) == "23:30:00 lies between 22:00 and 06:00"
    assert dark.why(from_datetime(FRIDAY)) is None


def test_it_is_said_in_english() -> None:
    assert blackout("22:00", "06:00").describe() == "between 22:00 and 06:00"
    assert blackout("8:30", "09:00:30", days=["MON-FRI"], tz="Asia/Tokyo").describe() == (
        "between 08:30 and 09:00:30 on Monday to Friday in Asia/Tokyo"
    )


@pytest.mark.parametrize(
    "value", ["25:00", "24:01", "12:60", "12:00:60", "12", "noon", "", 12, None, time(1, tzinfo=UTC)]
)
def test_a_time_of_day_is_written_like_22_00(value: Any) -> None:
    with pytest.raises(InvalidTrigger, match=r"^end must be a time of day such as '22:00'"):
        blackout("11:00", value)
    with pytest.raises(InvalidTrigger, match=r"^start must be a time of day such as '22:00'"):
        blackout(value, "11:00")


def test_a_time_of_day_and_a_moment_do_not_mix() -> None:
    with pytest.raises(InvalidTrigger, match=r"^end must be a time of day"):
        blackout("11:00", FRIDAY)


def test_what_excludes_nothing_or_everything_is_refused() -> None:
    with pytest.raises(InvalidTrigger, match="is empty; to exclude whole days"):
        blackout("11:00", "11:00")
    with pytest.raises(InvalidTrigger, match="all the time"):
        blackout("00:00", "24:00")
    with pytest.raises(InvalidTrigger, match="must lie after start"):
        blackout(FRIDAY, FRIDAY)
    with pytest.raises(InvalidTrigger, match="happens once"):
        blackout(FRIDAY, FRIDAY + timedelta(days=1), days="FRI")
    with pytest.raises(InvalidTrigger, match="must be a second of the day"):
        blackout("24:00", "11:00")


def test_moments_must_be_aware() -> None:
    with pytest.raises(InvalidTime, match=r"^start "):
        blackout(FRIDAY.replace(tzinfo=None), FRIDAY)
