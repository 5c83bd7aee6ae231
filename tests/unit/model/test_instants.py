from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from duetime.errors import InvalidTime
from duetime.model.time import EARLIEST, LATEST, SECOND, from_datetime, to_datetime


@given(st.integers(EARLIEST, LATEST))
def test_every_instant_survives_the_way_there_and_back(instant: int) -> None:
    moment = to_datetime(instant)
    assert moment.tzinfo is UTC
    assert from_datetime(moment) == instant


@pytest.mark.covers("zones-and-naive-times")
def test_an_instant_counts_microseconds_from_1970_in_utc() -> None:
    assert from_datetime(datetime(1970, 1, 1, 1, 0, 0, 5, tzinfo=timezone(timedelta(hours=1)))) == 5


def test_both_sides_of_a_repeated_hour_are_told_apart() -> None:
    first = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert from_datetime(first.replace(fold=1)) - from_datetime(first) == 3600 * SECOND


@pytest.mark.covers("zones-and-naive-times")
def test_a_naive_datetime_is_refused_with_the_fix() -> None:
    with pytest.raises(InvalidTime, match=r"at 2024-01-01T00:00:00 has no time zone; pass an aware datetime"):
        from_datetime(datetime(2024, 1, 1), what="at")  # noqa: DTZ001 - that is the point


@pytest.mark.parametrize("moment", [0, 1.5, "2024-01-01", None, date(2024, 1, 1)])
def test_what_is_no_datetime_is_refused(moment: Any) -> None:
    with pytest.raises(InvalidTime, match="must be an aware datetime, not"):
        from_datetime(moment)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(9000, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=12))),
    ],
)
def test_times_out_of_range_are_refused(moment: datetime) -> None:
    with pytest.raises(InvalidTime, match="out of range; it must lie between 1970 and 9000"):
        from_datetime(moment)
