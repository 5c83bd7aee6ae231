from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from duetime.model.time import LATEST, SECOND, from_datetime
from duetime.model.triggers.cron import cron
from duetime.model.triggers.zones import DAY_SECONDS, first_after_wall, wall_second_at, zone, zone_name_of
from tests.support.profiles import tries

PLACES = [
    "UTC", "Europe/Berlin", "Africa/Cairo", "America/Sao_Paulo", "Australia/Lord_Howe",
    "Pacific/Apia", "Asia/Kathmandu", "America/New_York", "Antarctica/Troll",
]  # fmt: skip
INSTANTS = st.integers(
    from_datetime(datetime(2010, 1, 1, tzinfo=UTC)), from_datetime(datetime(2026, 1, 1, tzinfo=UTC))
)


def daily(wall: int, *, hour: int, minute: int) -> int:
    """Return the first wall second at or after `wall` that shows the time."""
    return wall + (hour * 3600 + minute * 60 - wall) % DAY_SECONDS


@tries(3)
@given(place=st.sampled_from(PLACES), hour=st.integers(0, 23), minute=st.integers(0, 59), instant=INSTANTS)
def test_a_fixed_wall_time_means_what_it_means_in_cron(
    place: str, hour: int, minute: int, instant: int
) -> None:
    rule = cron(f"{minute} {hour} * * *", tz=place)
    for _ in range(100):
        found = first_after_wall(zone(place), instant, partial(daily, hour=hour, minute=minute))
        assert found is not None
        assert found == rule.after(instant)
        instant = found


@pytest.mark.parametrize("place", PLACES)
def test_it_does_so_from_any_moment_around_a_change_of_the_clock(place: str) -> None:
    begin, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2011, 2013))
    while (stretch := zone(place).period_at(begin)).end < end:
        begin = stretch.end
        for second in range(begin - 2 * 3600, begin + 2 * 3600, 600):
            for hour in (0, 1, 2, 3, 23):
                rule = cron(f"20 {hour} * * *", tz=place)
                found = first_after_wall(zone(place), second * SECOND, partial(daily, hour=hour, minute=20))
                assert found == rule.after(second * SECOND)


def test_nothing_comes_where_nothing_is_found_or_time_has_ended() -> None:
    assert first_after_wall(zone("UTC"), 0, lambda _: None) is None
    assert first_after_wall(zone("UTC"), 0, lambda _: LATEST // SECOND + 1) is None
    assert first_after_wall(zone("UTC"), 0, lambda _: LATEST // SECOND) == LATEST


def test_the_wall_clock_is_that_of_the_zone() -> None:
    assert wall_second_at(zone("Asia/Kathmandu"), 86_400 * 365 * 30 * SECOND) == 86_400 * 365 * 30 + 20_700


@pytest.mark.parametrize(
    ("tz", "start", "key"),
    [
        (None, None, "UTC"),
        (None, datetime(2025, 1, 1, tzinfo=UTC), "UTC"),
        (None, datetime(2025, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo")), "Asia/Tokyo"),
        ("Europe/Riga", datetime(2025, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo")), "Europe/Riga"),
        (ZoneInfo("Europe/Riga"), None, "Europe/Riga"),
    ],
)
def test_the_zone_is_the_one_given_or_that_of_the_start(
    tz: str | ZoneInfo | None, start: datetime | None, key: str
) -> None:
    assert zone_name_of(tz, start) == key
