from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from duetime import calendars
from duetime.errors import InvalidTrigger
from duetime.model.time import MILLISECOND, SECOND, from_datetime
from duetime.model.triggers.at import at
from duetime.model.triggers.base import OCCURRENCES_COMPARED, Trigger, check_comes, check_pace
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
NOW = from_datetime(NOON)


# It never comes, but a search gets on by an hour or two.
UNKNOWN = cron("*/2 * * * * *") & cron("1-59/2 * * * * *", tz="Asia/Tokyo")


@pytest.mark.parametrize(
    "trigger", [UNKNOWN, cron("0 0 29 2 *"), every("1h"), at(NOON + timedelta(seconds=1))]
)
def test_what_comes_is_let_through(trigger: Trigger) -> None:
    check_comes(trigger, NOW)


@pytest.mark.parametrize(
    "trigger",
    [
        at(NOON),
        every("1h", end=NOON),
        cron("0 9 * * *").between(end=NOON),
        cron("0 9 * * *") - calendars.blackout("08:00", "10:00"),
        cron("0 9 * * *") & cron("0 10 * * *"),
        cron("0 9 * * *") & cron("0 10 * * *", tz="Asia/Tokyo"),
        UNKNOWN.between(end=NOON + timedelta(hours=1)),
    ],
)
def test_what_never_comes_is_refused(trigger: Trigger) -> None:
    with pytest.raises(
        InvalidTrigger, match=r"never comes after 2025-01-01 12:00:00 UTC; check its dates"
    ) as caught:
        check_comes(trigger, NOW)
    assert trigger.describe() in str(caught.value)


@pytest.mark.parametrize(
    "trigger", [cron("* * * * * *"), every("1s"), at(NOON), at([NOON, NOON + timedelta(1)])]
)
def test_once_a_second_is_not_too_often(trigger: Trigger) -> None:
    check_pace(trigger, NOW - 10 * SECOND, SECOND)


def test_two_occurrences_too_close_together_are_refused_with_both_moments() -> None:
    trigger = cron("0 * * * *") | every("10s", start=NOON + timedelta(milliseconds=500))
    with pytest.raises(
        InvalidTrigger, match=r"comes at 2025-01-01 12:00:00\.500\S+ and 2025-01-01 12:00:10\.500"
    ):
        check_pace(trigger, NOW, 11 * SECOND)
    with pytest.raises(InvalidTrigger, match=r"closer than 1 second; make it rarer.*shortest_interval"):
        check_pace(every("999ms"), NOW, SECOND)
    check_pace(every("10ms"), NOW, 10 * MILLISECOND)


def test_a_pace_is_judged_by_a_bounded_number_of_occurrences() -> None:
    late = [NOON + timedelta(hours=number) for number in range(OCCURRENCES_COMPARED + 1)]
    check_pace(at([*late, late[-1] + timedelta(milliseconds=1)]), NOW - 1, SECOND)
    with pytest.raises(InvalidTrigger, match="closer than"):
        check_pace(at([*late[:-1], late[-2] + timedelta(milliseconds=1)]), NOW - 1, SECOND)
