from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import pairwise, product
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from duetime.errors import InvalidCron, InvalidTime
from duetime.model.time import LATEST, from_datetime
from duetime.model.triggers.cron import Cron, cron
from duetime.model.triggers.every import Every

START = "2025-01-01T00:00:00"


def upcoming(expression: str, *, count: int = 3, start: str = START, **options: Any) -> list[str]:
    trigger, moment, found = (
        cron(expression, **options),
        datetime.fromisoformat(start).replace(tzinfo=UTC),
        [],
    )
    for _ in range(count):
        following = trigger.next_after(moment)
        assert following is not None
        moment = following
        found.append(moment.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00"))
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", ["2025-01-01 00:01", "2025-01-01 00:02", "2025-01-01 00:03"]),
        ("*/20 * * * *", ["2025-01-01 00:20", "2025-01-01 00:40", "2025-01-01 01:00"]),
        ("7/25 * * * *", ["2025-01-01 00:07", "2025-01-01 00:32", "2025-01-01 00:57"]),
        ("5-9/2,50 3 * * *", ["2025-01-01 03:05", "2025-01-01 03:07", "2025-01-01 03:09"]),
        ("*/25 * * * * *", ["2025-01-01 00:00:25", "2025-01-01 00:00:50", "2025-01-01 00:01"]),
        ("30 59 23 31 12 *", ["2025-12-31 23:59:30", "2026-12-31 23:59:30", "2027-12-31 23:59:30"]),
        ("0 9 * * MON-FRI", ["2025-01-01 09:00", "2025-01-02 09:00", "2025-01-03 09:00"]),
        ("0 9 * * sat-sun", ["2025-01-04 09:00", "2025-01-05 09:00", "2025-01-11 09:00"]),
        ("0 9 * * 0", ["2025-01-05 09:00", "2025-01-12 09:00", "2025-01-19 09:00"]),
        ("0 9 * * 7", ["2025-01-05 09:00", "2025-01-12 09:00", "2025-01-19 09:00"]),
        ("0 9 * * 6-7", ["2025-01-04 09:00", "2025-01-05 09:00", "2025-01-11 09:00"]),
        ("0 0 1 jan,Jul *", ["2025-07-01 00:00", "2026-01-01 00:00", "2026-07-01 00:00"]),
        ("0 0 L * *", ["2025-01-31 00:00", "2025-02-28 00:00", "2025-03-31 00:00"]),
        ("0 0 L 2 *", ["2025-02-28 00:00", "2026-02-28 00:00", "2027-02-28 00:00"]),
        ("0 0 1,L * *", ["2025-01-31 00:00", "2025-02-01 00:00", "2025-02-28 00:00"]),
        ("0 0 L-3 2 *", ["2025-02-25 00:00", "2026-02-25 00:00", "2027-02-25 00:00"]),
        ("0 0 l-30 * *", ["2025-03-01 00:00", "2025-05-01 00:00", "2025-07-01 00:00"]),
        ("0 0 1,L-1 * *", ["2025-01-30 00:00", "2025-02-01 00:00", "2025-02-27 00:00"]),
        ("0 0 L-3W * *", ["2025-01-28 00:00", "2025-02-25 00:00", "2025-03-28 00:00"]),
        ("0 0 LW * *", ["2025-01-31 00:00", "2025-02-28 00:00", "2025-03-31 00:00"]),
        ("0 0 LW 5,8 *", ["2025-05-30 00:00", "2025-08-29 00:00", "2026-05-29 00:00"]),
        ("0 0 15W * *", ["2025-01-15 00:00", "2025-02-14 00:00", "2025-03-14 00:00"]),
        ("0 0 15W 6 *", ["2025-06-16 00:00", "2026-06-15 00:00", "2027-06-15 00:00"]),
        ("0 0 1W 2,3 *", ["2025-02-03 00:00", "2025-03-03 00:00", "2026-02-02 00:00"]),
        ("0 0 31W * *", ["2025-01-31 00:00", "2025-03-31 00:00", "2025-05-30 00:00"]),
        ("0 0 30W 11 *", ["2025-11-28 00:00", "2026-11-30 00:00", "2027-11-30 00:00"]),
        ("0 0 * * FRI#2", ["2025-01-10 00:00", "2025-02-14 00:00", "2025-03-14 00:00"]),
        ("0 0 * * 7#1", ["2025-01-05 00:00", "2025-02-02 00:00", "2025-03-02 00:00"]),
        ("0 0 * * SAT#5", ["2025-03-29 00:00", "2025-05-31 00:00", "2025-08-30 00:00"]),
        ("0 0 * * FRIL", ["2025-01-31 00:00", "2025-02-28 00:00", "2025-03-28 00:00"]),
        ("0 0 * * 0L,MON#1", ["2025-01-06 00:00", "2025-01-26 00:00", "2025-02-03 00:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"]),
        ("0 0 29 2 */7", ["2032-02-29 00:00", "2060-02-29 00:00", "2088-02-29 00:00"]),
        ("@yearly", ["2026-01-01 00:00", "2027-01-01 00:00", "2028-01-01 00:00"]),
        ("@annually", ["2026-01-01 00:00", "2027-01-01 00:00", "2028-01-01 00:00"]),
        ("@monthly", ["2025-02-01 00:00", "2025-03-01 00:00", "2025-04-01 00:00"]),
        ("@weekly", ["2025-01-05 00:00", "2025-01-12 00:00", "2025-01-19 00:00"]),
        ("@daily", ["2025-01-02 00:00", "2025-01-03 00:00", "2025-01-04 00:00"]),
        ("@Midnight", ["2025-01-02 00:00", "2025-01-03 00:00", "2025-01-04 00:00"]),
        ("@hourly", ["2025-01-01 01:00", "2025-01-01 02:00", "2025-01-01 03:00"]),
        ("0 22-2 * * *", ["2025-01-01 01:00", "2025-01-01 02:00", "2025-01-01 22:00"]),
        ("50-10/5 0 * * *", ["2025-01-01 00:05", "2025-01-01 00:10", "2025-01-01 00:50"]),
        ("57-5/3 0 * * *", ["2025-01-01 00:03", "2025-01-01 00:57", "2025-01-02 00:00"]),
        ("0 0 30-2 * *", ["2025-01-02 00:00", "2025-01-30 00:00", "2025-01-31 00:00"]),
        ("0 0 20-5/5 * *", ["2025-01-04 00:00", "2025-01-20 00:00", "2025-01-25 00:00"]),
        ("0 0 1 NOV-FEB *", ["2025-02-01 00:00", "2025-11-01 00:00", "2025-12-01 00:00"]),
        ("0 0 * * FRI-MON", ["2025-01-03 00:00", "2025-01-04 00:00", "2025-01-05 00:00"]),
        ("0 0 * * 6-1", ["2025-01-04 00:00", "2025-01-05 00:00", "2025-01-06 00:00"]),
        ("0 0 * * 7-2", ["2025-01-05 00:00", "2025-01-06 00:00", "2025-01-07 00:00"]),
        ("0 0 * * SAT-TUE/2", ["2025-01-04 00:00", "2025-01-06 00:00", "2025-01-11 00:00"]),
        ("0 0 * * SUN-SUN", ["2025-01-02 00:00", "2025-01-03 00:00", "2025-01-04 00:00"]),
        ("0 0 * * Monday", ["2025-01-06 00:00", "2025-01-13 00:00", "2025-01-20 00:00"]),
        ("0 0 * * thursday-Saturday", ["2025-01-02 00:00", "2025-01-03 00:00", "2025-01-04 00:00"]),
        ("0 0 * * Friday#2,SundayL", ["2025-01-10 00:00", "2025-01-26 00:00", "2025-02-14 00:00"]),
        ("0 0 1 July,Sept *", ["2025-07-01 00:00", "2025-09-01 00:00", "2026-07-01 00:00"]),
        ("0 9 ? * MON", ["2025-01-06 09:00", "2025-01-13 09:00", "2025-01-20 09:00"]),
        ("0 0 9 15 * ?", ["2025-01-15 09:00", "2025-02-15 09:00", "2025-03-15 09:00"]),
        ("0 0 9 ? * ? *", ["2025-01-01 09:00", "2025-01-02 09:00", "2025-01-03 09:00"]),
        ("0 0 9 1 1 * 2030-2040/5", ["2030-01-01 09:00", "2035-01-01 09:00", "2040-01-01 09:00"]),
        ("0 0 9 1 1 ? 2027,2031/2", ["2027-01-01 09:00", "2031-01-01 09:00", "2033-01-01 09:00"]),
        ("0 0 0 29 2 * 2030-2040", ["2032-02-29 00:00", "2036-02-29 00:00", "2040-02-29 00:00"]),
        ("30 59 23 31 12 * *", ["2025-12-31 23:59:30", "2026-12-31 23:59:30", "2027-12-31 23:59:30"]),
        ("  0   3\t* * *  ", ["2025-01-01 03:00", "2025-01-02 03:00", "2025-01-03 03:00"]),
    ],
)
def test_an_expression_comes_at_its_times(expression: str, expected: list[str]) -> None:
    assert upcoming(expression) == expected


def test_two_restricted_day_fields_mean_either() -> None:
    assert upcoming("0 0 10 * MON") == ["2025-01-06 00:00", "2025-01-10 00:00", "2025-01-13 00:00"]


@pytest.mark.parametrize("expression", ["0 0 10-13 * */1", "0 0 */1 * 5-6,0-1"])
def test_a_day_field_that_begins_with_a_star_means_both(expression: str) -> None:
    assert upcoming(expression, start="2025-01-09T00:00:00", count=2) == [
        "2025-01-10 00:00",
        "2025-01-11 00:00",
    ]
    assert upcoming("0 0 */10 * MON", count=2) == ["2025-03-31 00:00", "2025-04-21 00:00"]


def test_a_leap_day_is_found_across_the_century_that_has_none() -> None:
    assert upcoming("0 0 29 2 */7", start="2088-03-01T00:00:00", count=1) == ["2128-02-29 00:00"]


@pytest.mark.parametrize("back", range(31))
def test_a_day_counted_from_the_end_of_a_month_is_where_the_calendar_has_it(back: int) -> None:
    plain: list[date] = []
    near: list[date] = []
    for year, month in product(range(2023, 2027), range(1, 13)):
        days = [date(year, month, day + 1) for day in range(monthrange(year, month)[1])]
        if back < len(days):
            meant = days[-1 - back]
            workdays = [day for day in days if day.isoweekday() <= 5]
            plain.append(meant)
            near.append(min(workdays, key=lambda day: abs(day - meant)))
    for expression, expected in ((f"0 0 L-{back} * *", plain), (f"0 0 L-{back}W * *", near)):
        found = upcoming(expression, start="2022-12-31T23:00:00", count=len(expected))
        assert found == [f"{day} 00:00" for day in expected]


def test_a_rule_ends_with_its_years() -> None:
    rule = cron("0 0 12 1 7 * 2030,2032", tz="America/New_York")
    assert isinstance(rule, Cron)
    assert upcoming("0 0 12 1 7 * 2030,2032", tz="America/New_York", count=2) == [
        "2030-07-01 16:00",
        "2032-07-01 16:00",
    ]
    assert rule.next_after(datetime(2032, 7, 1, 16, tzinfo=UTC)) is None
    assert rule.count(0, LATEST) == 2
    assert rule.count(0, from_datetime(datetime(2032, 7, 1, 15, tzinfo=UTC))) == 1


def test_six_fields_mean_what_they_meant_before_there_were_seven() -> None:
    assert upcoming("0 30 9 * * 5") == upcoming("0 30 9 * * 5 *") == upcoming("30 9 * * 5")


def test_the_end_of_time_is_none() -> None:
    assert cron("@yearly").next_after(datetime(9000, 1, 1, tzinfo=UTC)) is None
    assert cron("* * * * * *", tz="Asia/Tokyo").next_after(datetime(9000, 1, 1, tzinfo=UTC)) is None


def test_the_first_instant_of_1970_works_in_every_direction() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for tz in ("Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"):
        assert cron("* * * * * *", tz=tz).next_after(epoch) == epoch.replace(second=1)


def test_the_result_is_strictly_after_also_within_a_second() -> None:
    trigger = cron("* * * * * *")
    moment = datetime(2025, 1, 1, microsecond=1, tzinfo=UTC)
    assert trigger.next_after(moment) == datetime(2025, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert trigger.next_after(moment.replace(microsecond=999_999)) == datetime(
        2025, 1, 1, 0, 0, 1, tzinfo=UTC
    )


def test_the_zone_decides_what_the_fields_mean() -> None:
    assert upcoming("0 9 * * *", tz="Asia/Tokyo", count=1) == ["2025-01-02 00:00"]
    assert upcoming("0 9 * * *", tz=ZoneInfo("America/New_York"), count=1) == ["2025-01-01 14:00"]


@pytest.mark.parametrize("prefix", ["TZ", "CRON_TZ"])
def test_a_zone_may_stand_in_front(prefix: str) -> None:
    assert cron(f"{prefix}=Europe/Riga 0 3 * * *") == cron("0 3 * * *", tz="Europe/Riga")
    assert cron(f"{prefix}=Europe/Riga 0 3 * * *", tz="Europe/Riga") == cron("0 3 * * *", tz="Europe/Riga")


def test_two_different_zones_are_refused() -> None:
    with pytest.raises(InvalidCron, match="give one of them"):
        cron("TZ=Europe/Riga 0 3 * * *", tz="Europe/Berlin")


def test_every_in_a_cron_expression_is_an_interval() -> None:
    assert cron("@every 1h30m") == Every(interval=5_400_000_000)


def test_a_naive_moment_is_refused() -> None:
    with pytest.raises(InvalidTime, match="time zone"):
        cron("@daily").next_after(datetime(2025, 1, 1))  # noqa: DTZ001 - the mistake under test


def test_rules_are_equal_by_value() -> None:
    assert cron("0  3 * * *", tz="Europe/Berlin") == cron("0 3 * * *", tz=ZoneInfo("Europe/Berlin"))
    assert hash(cron("0 3 * * *")) == hash(cron("0 3 * * *"))
    assert cron("0 3 * * *") != cron("0 4 * * *")
    assert cron("0 3 * * *") != cron("0 3 * * *", tz="Europe/Berlin")


def test_hashed_fields_spread_by_name_and_stay_put() -> None:
    rule = cron("H H * * *")
    spread = {tuple(upcoming("H H * * *", seed=f"job-{number}", count=1)) for number in range(200)}
    assert len(spread) > 150
    assert rule.seeded("nightly") == cron("H H * * *", seed="nightly")
    assert rule.seeded("nightly") == rule.seeded("nightly").seeded("other")


def test_a_name_changes_nothing_where_nothing_is_hashed() -> None:
    assert cron("0 3 * * *").seeded("nightly") == cron("0 3 * * *") == cron("0 3 * * *", seed="x")


@pytest.mark.parametrize(
    ("expression", "gap", "allowed"),
    [
        ("H(0-29) * * * *", 60, range(30)),
        ("H/15 * * * *", 15, range(60)),
        ("H(30-59)/10 * * * *", None, range(30, 60)),
        ("H(45-14)/10 * * * *", None, [*range(45, 60), *range(15)]),
    ],
)
def test_hashed_values_keep_to_their_range_and_step(
    expression: str, gap: int | None, allowed: Sequence[int]
) -> None:
    for number in range(50):
        minutes = [int(time[14:16]) for time in upcoming(expression, seed=str(number), count=8)]
        assert set(minutes) <= set(allowed)
        if gap:
            assert {(b - a) % 60 for a, b in pairwise(minutes)} == {gap % 60}
        else:
            assert len(set(minutes)) == 3


def test_a_hashed_step_wider_than_its_range_still_comes_once() -> None:
    for number in range(50):
        minutes = {int(time[14:16]) for time in upcoming("H(10-14)/30 * * * *", seed=str(number))}
        assert len(minutes) == 1
        assert minutes <= set(range(10, 15))


def test_a_hashed_weekday_is_fair_to_sunday() -> None:
    dates = [upcoming("0 0 * * H", seed=str(number), count=1)[0][:10] for number in range(1_400)]
    counts = Counter(datetime.fromisoformat(date).isoweekday() for date in dates)
    assert len(counts) == 7
    assert max(counts.values()) < 260


def test_a_hashed_day_comes_every_month() -> None:
    for number in range(60):
        months = [time[5:7] for time in upcoming("0 0 H * *", seed=str(number), count=12)]
        assert len(set(months)) == 12


def test_the_hash_is_the_same_in_every_process() -> None:
    assert upcoming("H H * * *", seed="nightly", count=1) == ["2025-01-01 08:03"]
