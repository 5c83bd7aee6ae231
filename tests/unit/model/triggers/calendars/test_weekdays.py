from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime.calendars import weekdays, weekends
from duetime.errors import InvalidTrigger
from duetime.model.time import from_datetime
from duetime.model.triggers.zones import DAY_SECONDS


@given(day=st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - the zone is given beside
def test_the_days_are_those_of_the_calendar_on_the_wall(day: datetime) -> None:
    assert (weekends().until(from_datetime(day)) is not None) is (day.weekday() in (5, 6))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["SAT", "SUN"], (5, 6)),
        (["sunday", " Saturday "], (5, 6)),
        (["MON-FRI"], (0, 1, 2, 3, 4)),
        (["FRI-MON"], (0, 4, 5, 6)),
        (["SAT,SUN", "SAT"], (5, 6)),
        (["WED-WED"], (2,)),
    ],
)
def test_days_can_be_written_in_many_ways(written: list[str], read: tuple[int, ...]) -> None:
    assert weekdays(*written).days == read


@pytest.mark.parametrize(
    "written", [["SA"], [""], ["MON-"], ["-FRI"], ["MON--FRI"], [5], [None], ["SAT," * 100]]
)
def test_an_unknown_day_is_refused(written: list[Any]) -> None:
    with pytest.raises(InvalidTrigger, match=r"days are (MON, TUE|names such as)"):
        weekdays(*written)


def test_no_day_and_every_day_are_refused() -> None:
    with pytest.raises(InvalidTrigger, match="no days are given"):
        weekdays()
    with pytest.raises(InvalidTrigger, match="all seven days"):
        weekdays("MON-SUN")


def test_it_is_said_in_english() -> None:
    assert weekdays("SAT").describe() == "on Saturday"
    assert weekdays("MON-FRI", tz="Asia/Tokyo").describe() == "on Monday to Friday in Asia/Tokyo"
    assert weekdays("MON", "WED", "SUN").describe() == "on Monday, Wednesday and Sunday"


def test_it_says_which_day() -> None:
    saturday = from_datetime(datetime(2026, 12, 26, tzinfo=UTC))
    assert weekends().why(saturday) == "2026-12-26 is a Saturday"
    assert weekends().why(saturday - 1) is None
    assert weekends().until(saturday) == saturday + 2 * DAY_SECONDS * 1_000_000
