from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from duetime.calendars import days_off, holidays
from duetime.errors import InvalidTrigger
from duetime.model.time import from_datetime, to_datetime

CHRISTMAS = date(2030, 12, 25)


def instant(*parts: int, tz: str = "UTC") -> int:
    return from_datetime(datetime(*parts, tzinfo=ZoneInfo(tz)))  # type: ignore[arg-type, misc]


def test_the_whole_day_is_excluded_and_nothing_else() -> None:
    free = holidays([CHRISTMAS], tz="Europe/Riga")
    begin, end = instant(2030, 12, 25, tz="Europe/Riga"), instant(2030, 12, 26, tz="Europe/Riga")
    assert [free.until(at) for at in (begin - 1, begin, end - 1, end)] == [None, end, end, None]


def test_a_day_that_begins_at_one_o_clock_ends_at_midnight_all_the_same() -> None:
    # In Cairo the clock went from 24:00 to 1:00 on 26 April 2024.
    free = holidays([date(2024, 4, 26)], tz="Africa/Cairo")
    begin = from_datetime(datetime(2024, 4, 25, 22, tzinfo=UTC))
    assert free.until(begin - 1) is None
    assert free.until(begin) == from_datetime(datetime(2024, 4, 26, 21, tzinfo=UTC))


def test_a_date_that_a_zone_has_left_out_excludes_nothing() -> None:
    free = holidays([date(2011, 12, 30)], tz="Pacific/Apia")
    around = [
        from_datetime(datetime(2011, 12, 29 + day, hour, tzinfo=UTC))
        for day in range(3)
        for hour in range(24)
    ]
    assert [at for at in around if free.why(at)] == []


def test_it_says_which_holiday() -> None:
    noon = instant(2030, 12, 25, 12)
    assert holidays([CHRISTMAS]).why(noon) == "2030-12-25 is a holiday"
    assert holidays({CHRISTMAS: "Christmas Day"}).why(noon) == "2030-12-25 is a holiday (Christmas Day)"
    assert holidays([CHRISTMAS]).why(instant(2030, 12, 26)) is None


def test_it_is_said_in_english() -> None:
    days = [date(2030, 1, day) for day in range(1, 5)]
    assert holidays(days[:1]).describe() == "on 2030-01-01"
    assert holidays(days[:2], tz="Asia/Tokyo").describe() == "on 2030-01-01, 2030-01-02 in Asia/Tokyo"
    assert holidays(days).describe() == "on 4 holidays"


@pytest.mark.parametrize(
    "dates",
    [
        5,
        None,
        "2030-12-25",
        CHRISTMAS,
        ["2030-12-25"],
        [datetime(2030, 12, 25, tzinfo=UTC)],
        [[]],
        {CHRISTMAS: 5},
        [],
    ],
)
def test_only_dates_are_holidays(dates: Any) -> None:
    with pytest.raises(InvalidTrigger, match=r"such as|dates|the name of the holiday 2030-12-25 is a text"):
        holidays(dates)


def test_too_many_dates_are_refused_without_reading_them_all() -> None:
    with pytest.raises(InvalidTrigger, match="at most 10000 dates"):
        holidays(CHRISTMAS for _ in iter(int, 1))


def test_days_off_are_the_weekend_and_holidays() -> None:
    free = days_off([CHRISTMAS], tz="Europe/Riga")
    assert free.describe(known_tz="Europe/Riga") == "on Saturday and Sunday and on 2030-12-25"
    assert days_off([]).describe() == days_off().describe() == "on Saturday and Sunday"
    assert days_off({CHRISTMAS: "Christmas"}, weekend="FRI-SAT").why(instant(2030, 12, 27)) == (
        "2030-12-27 is a Friday"
    )
    with pytest.raises(InvalidTrigger):
        days_off(5)  # type: ignore[arg-type]


def test_the_end_of_a_day_is_in_its_zone() -> None:
    end = holidays([CHRISTMAS], tz="America/New_York").until(instant(2030, 12, 25, 12))
    assert end is not None
    assert to_datetime(end) == datetime(2030, 12, 26, 5, tzinfo=UTC)
