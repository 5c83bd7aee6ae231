from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from duetime.model.triggers import zones
from duetime.model.triggers.cron import cron
from duetime.model.triggers.zones import Zone, zone
from tests.support.steps import steps_of

YEAR = 2025
BEGIN = datetime(YEAR, 1, 1, tzinfo=UTC)
SECONDS = range(int(BEGIN.timestamp()), int(BEGIN.replace(year=YEAR + 1).timestamp()), 3600)


def stretches(key: str) -> list[tuple[int, int]]:
    found = []
    second = SECONDS.start
    while second < SECONDS.stop:
        stretch = zone(key).period_at(second)
        found.append((stretch.end, stretch.offset))
        second = stretch.end
    return found


def one_name_per_clock() -> list[str]:
    """Aliases share a clock; one of them is enough."""
    named: dict[tuple[tuple[int, int], ...], str] = {}
    for key in sorted(available_timezones()):
        named.setdefault(tuple(stretches(key)), key)
    return list(named.values())


CLOCKS = one_name_per_clock()


def test_there_are_many_clocks_to_try() -> None:
    assert len(CLOCKS) > 50


def test_the_offset_of_every_clock_is_that_of_zoneinfo_at_every_hour() -> None:
    for key in CLOCKS:
        info, clock = ZoneInfo(key), zone(key)
        for second in SECONDS[::5]:
            expected = datetime.fromtimestamp(second, info).utcoffset()
            assert timedelta(seconds=clock.period_at(second).offset) == expected, (key, second)


@pytest.mark.parametrize(
    "key", ["Europe/Berlin", "Africa/Casablanca", "Asia/Gaza", "America/Recife", "Pacific/Apia"]
)
def test_no_change_of_the_clock_is_missed_in_a_century(key: str) -> None:
    info, clock = ZoneInfo(key), zone(key)
    for second in range(0, int(datetime(2080, 1, 1, tzinfo=UTC).timestamp()), 86_400 + 3_601):
        expected = datetime.fromtimestamp(second, info).utcoffset()
        assert timedelta(seconds=clock.period_at(second).offset) == expected, second


def test_a_stretch_knows_the_second_in_which_it_begins() -> None:
    change = int(datetime(2025, 10, 26, 1, tzinfo=UTC).timestamp())
    before, after = (zone("Europe/Berlin").period_at(second) for second in (change - 1, change))
    assert (before.end, before.offset) == (change, 7_200)
    assert (after.start, after.offset, after.seen) == (change, 3_600, change + 7_200)


def test_a_clock_set_back_at_the_edge_of_a_kept_block_is_remembered_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change = int(datetime(2025, 10, 26, 1, tzinfo=UTC).timestamp())
    # A block that ends ten minutes after the change, in the middle of the hour that is shown again.
    monkeypatch.setattr(zones, "_BLOCK", (change + 600) // 50)
    edge = change + 600
    clock = Zone(ZoneInfo("Europe/Berlin"))
    assert clock.period_at(edge - 1).end == clock.period_at(edge).start == edge
    assert clock.period_at(edge).seen == change + 7_200


def test_the_years_kept_are_bounded() -> None:
    clock = Zone(ZoneInfo("Europe/Berlin"))
    for year in range(1970, 2270):
        clock.period_at(int(datetime(year, 7, 1, tzinfo=UTC).timestamp()))
    assert len(clock._blocks) <= zones._BLOCKS_KEPT


@pytest.mark.parametrize("expression", ["30 2 * * *", "0 0 * * *", "15 30 1 * * *"])
def test_a_daily_rule_comes_once_on_every_date_of_every_zone(expression: str) -> None:
    days = [date(YEAR, 1, 2) + timedelta(days=number) for number in range(363)]
    for key in CLOCKS:
        trigger, info = cron(expression, tz=key), ZoneInfo(key)
        found, instant = [], datetime(YEAR, 1, 2, tzinfo=info) - timedelta(microseconds=1)
        while (following := trigger.next_after(instant)) is not None and (
            following.astimezone(info).date() <= days[-1]
        ):
            assert following > instant
            instant = following
            found.append(instant.astimezone(info).date())
        assert found == days, key


def test_an_open_rule_comes_whenever_the_wall_shows_it() -> None:
    for key in CLOCKS[::8]:
        trigger, info, moment = cron("0 */6 * * *", tz=key), ZoneInfo(key), BEGIN
        for number in range(1, 300 * 96):
            quarter = BEGIN + timedelta(minutes=15 * number)
            wall = quarter.astimezone(info)
            if wall.minute == 0 and wall.hour % 6 == 0:
                assert trigger.next_after(moment) == quarter, key
                moment = quarter


@pytest.mark.parametrize(
    ("expression", "tz"), [("@yearly", "Europe/Berlin"), ("*/5 * 29 2 *", "America/New_York")]
)
def test_a_rare_rule_takes_few_steps_in_years_not_yet_seen(expression: str, tz: str) -> None:
    zones._load_zone.cache_clear()
    trigger, moment = cron(expression, tz=tz), datetime(2029, 5, 3, tzinfo=UTC)
    assert steps_of(lambda: trigger.next_after(moment)) <= 300


@pytest.mark.parametrize(
    "tz", ["Europe/Berlin", "America/New_York", "Pacific/Apia", "Africa/Casablanca", "Asia/Gaza"]
)
def test_a_rare_rule_that_follows_the_clock_is_found_from_far_away_as_from_near(tz: str) -> None:
    for change in [end for end, _ in stretches(tz)]:
        wall = datetime.fromtimestamp(change, ZoneInfo(tz))
        trigger = cron(f"*/30 * {wall.day} {wall.month} *", tz=tz)
        near = datetime.fromtimestamp(change, UTC) - timedelta(days=2)
        assert trigger.next_after(near - timedelta(days=300)) == trigger.next_after(near)
