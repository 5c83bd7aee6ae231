from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from duetime import at, cron, every, rrule
from duetime.errors import InvalidTime
from duetime.model.time import LATEST, SECOND, from_datetime, to_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.calendars import days_off
from tests.support.profiles import tries
from tests.support.triggers import DAY, INSTANTS, UNLIMITED, Slow, moment, walk

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2025, 1, 1, 2, 30, tzinfo=BERLIN)


@tries(0.4)
@given(trigger=UNLIMITED, after=INSTANTS, length=st.integers(1, 10), inside=st.integers(0, 9_999))
def test_what_comes_after_before_and_between_agrees(
    trigger: Trigger, after: int, length: int, inside: int
) -> None:
    until = after + length * DAY
    walked = walk(trigger, after, until=until, most=1_000)
    if len(walked) == 1_000:
        until = walked[-1]
    listed = trigger.occurrences(to_datetime(after + 1), to_datetime(until))
    assert [from_datetime(one) for one in listed] == walked
    for earlier, later in pairwise(walked[:20]):
        between = earlier + 1 + (later - earlier - 1) * inside // 10_000
        for instant in (later, between):
            assert trigger.previous_before(to_datetime(instant)) == to_datetime(earlier)


RULES = [
    cron("30 2 * * *", tz="Europe/Berlin"),
    cron("*/20 * * * *", tz="Europe/Berlin"),
    every("7h", start=START),
    every(months=1, start=START),
    rrule("FREQ=DAILY", start=START),
    rrule("FREQ=MINUTELY;INTERVAL=20", start=START),
    rrule("FREQ=DAILY\nEXDATE:20250330T023000\nRDATE:20251026T023000", start=START),
    cron("30 2 * * *", tz="Europe/Berlin") - days_off(),
    cron("30 2 * * *", tz="Europe/Berlin") | cron("0 3 * * SUN", tz="Europe/Berlin"),
    cron("30 2 * * *", tz="Europe/Berlin") & cron("* 2 26 10 *", tz="Europe/Berlin"),
]


@pytest.mark.parametrize("trigger", RULES, ids=Trigger.describe)
@pytest.mark.parametrize("day", ["2025-03-28", "2025-10-24"])
def test_they_agree_around_a_change_of_the_clock(trigger: Trigger, day: str) -> None:
    begin, end = moment(day), moment(day) + timedelta(days=4)
    found = walk(trigger, from_datetime(begin), until=from_datetime(end), most=500)
    walked = [to_datetime(one) for one in found]
    assert list(trigger.occurrences(begin + timedelta(microseconds=1), end)) == walked
    for earlier, later in pairwise(walked):
        assert trigger.next_after(earlier) == later
        assert trigger.previous_before(later) == earlier
        assert trigger.previous_before(later - timedelta(microseconds=1)) == earlier
        assert trigger.previous_before(later + timedelta(microseconds=1)) == later


def test_both_ends_are_included_and_the_moment_itself_is_not_before_it() -> None:
    hours = cron("0 * * * *")
    begin, end = moment("2030-01-01T09:00"), moment("2030-01-01T11:00")
    assert [hour.hour for hour in hours.occurrences(begin, end)] == [9, 10, 11]
    assert list(hours.occurrences(begin, begin)) == [begin]
    assert list(hours.occurrences(begin + timedelta(seconds=1), end - timedelta(hours=1, seconds=1))) == []
    assert hours.previous_before(begin) == moment("2030-01-01T08:00")


def test_any_aware_moment_is_understood_and_answers_are_in_utc() -> None:
    trigger = cron("0 9 * * *", tz="Europe/Berlin")
    noon = datetime(2030, 7, 1, 12, tzinfo=BERLIN)
    assert trigger.previous_before(noon) == datetime(2030, 7, 1, 9, tzinfo=BERLIN)
    assert [one.tzinfo for one in trigger.occurrences(noon, noon + timedelta(days=1))] == [UTC]
    for ask in (
        lambda: trigger.previous_before(datetime(2030, 1, 1)),  # noqa: DTZ001 - the mistake under test
        lambda: trigger.occurrences(datetime(2030, 1, 1), noon),  # noqa: DTZ001 - the mistake under test
        lambda: trigger.occurrences(noon, noon - timedelta(seconds=1)),
    ):
        with pytest.raises(InvalidTime, match=r"no time zone|lies before start"):
            ask()


def test_the_last_one_is_found_however_long_ago_it_was_and_no_further_back_than_1970() -> None:
    late = to_datetime(LATEST)
    assert at(moment("1970-01-01")).previous_before(late) == moment("1970-01-01")
    assert cron("0 0 1 1 *", tz="America/New_York").previous_before(moment("1970-01-01T05:01")) == moment(
        "1970-01-01T05:00"
    )
    assert cron("@yearly").previous_before(moment("1970-01-01")) is None
    over = rrule("FREQ=DAILY;UNTIL=19800101", start=moment("1975-05-05"))
    assert over.previous_before(late) == moment("1980-01-01")
    leap = cron("0 0 29 2 *").between(end=moment("2001-01-01"))
    assert leap.previous_before(moment("2200-01-01")) == moment("2000-02-29")


def test_an_interval_without_a_start_counts_from_the_time_that_is_asked_about() -> None:
    noon = moment("2030-01-01T12:00")
    assert every("1h").previous_before(noon) is None
    listed = every("1h").occurrences(noon, noon + timedelta(hours=2))
    assert list(listed) == [noon + timedelta(hours=1), noon + timedelta(hours=2)]


def test_a_list_goes_on_over_any_gap_that_can_be_searched_and_else_says_so() -> None:
    rare = cron("0 0 29 2 *") & cron("0 0 * * MON")
    assert len(list(rare.occurrences(moment("1970-01-01"), moment("2370-01-01")))) > 10
    unknown = Slow(SECOND, 3) & Slow(SECOND, 5)
    found = unknown.occurrences(moment("2030-01-01"), moment("2030-02-01"))
    with pytest.raises(InvalidTime, match="takes too many steps to tell; ask for a shorter time"):
        next(found)
    # Nor is an earlier one taken for the last, where a later one may have been missed.
    rule = unknown | at(moment("2029-12-31T00:00:01"))
    assert rule.previous_before(moment("2030-01-01")) is None
