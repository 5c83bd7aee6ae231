from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given

from duetime import calendars
from duetime.errors import InvalidTrigger
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.calendars import Calendar
from duetime.model.triggers.combined import Except
from duetime.model.triggers.cron import cron
from tests.support.profiles import tries
from tests.support.triggers import CALENDARS, DAY, INSTANTS, LEAVES, walk


@tries(0.8)
@given(trigger=LEAVES, calendar=CALENDARS, after=INSTANTS)
def test_it_is_the_trigger_without_what_the_calendar_excludes(
    trigger: Trigger, calendar: Calendar, after: int
) -> None:
    until = after + 10 * DAY
    rule = trigger - calendar
    open_ones = [
        due for due in walk(trigger, after, until=until, most=3_000) if rule.calendar.why(due) is None
    ]
    assert walk(rule, after, until=until, most=3_000) == open_ones


def test_a_calendar_without_a_zone_is_read_in_the_zone_of_the_trigger() -> None:
    tokyo = cron("0 1 * * *", tz="Asia/Tokyo") - calendars.holidays([date(2030, 1, 2)])
    assert tokyo.next_after(datetime(2030, 1, 1, tzinfo=UTC)) == datetime(2030, 1, 2, 16, tzinfo=UTC)
    utc = cron("0 1 * * *", tz="Asia/Tokyo") - calendars.holidays([date(2030, 1, 2)], tz="UTC")
    assert utc.next_after(datetime(2030, 1, 1, tzinfo=UTC)) == datetime(2030, 1, 1, 16, tzinfo=UTC)
    assert utc.next_after(datetime(2030, 1, 1, 16, tzinfo=UTC)) == datetime(2030, 1, 3, 16, tzinfo=UTC)


def test_calendars_taken_one_after_the_other_are_one() -> None:
    free, dark = calendars.weekends(), calendars.blackout("22:00", "06:00")
    rule = cron("0 * * * *") - free - dark
    assert rule == cron("0 * * * *") - (free | dark)
    assert not isinstance(rule.trigger, Except)


@pytest.mark.parametrize("other", [5, None, cron("0 9 * * *"), date(2030, 1, 1), [date(2030, 1, 1)]])
def test_only_a_calendar_can_be_taken(other: Any) -> None:
    with pytest.raises(InvalidTrigger, match=r"such as calendars\.weekends\(\)"):
        cron("0 9 * * *") - other


def test_a_trigger_of_which_nothing_is_left_never_comes_and_says_so_in_bounded_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = cron("0 3 * * *") - calendars.blackout("02:00", "04:00")
    asked: list[int] = []
    until = type(rule.calendar).until

    def counted(self: Any, instant: int) -> int | None:
        asked.append(instant)
        return until(self, instant)

    monkeypatch.setattr(type(rule.calendar), "until", counted)
    assert rule.next_after(datetime(2030, 1, 1, tzinfo=UTC)) is None
    assert 0 < len(asked) <= 10_000


def test_it_is_said_in_english() -> None:
    rule = cron("0 9 * * *", tz="Europe/Riga") - calendars.days_off([date(2030, 12, 25)])
    assert (
        rule.describe() == "at 09:00 every day, Europe/Riga, except on Saturday and Sunday and on 2030-12-25"
    )
    elsewhere = cron("0 9 * * *") - calendars.blackout("22:00", "06:00", days="FRI", tz="Asia/Tokyo")
    assert elsewhere.describe() == (
        "at 09:00 every day, UTC, except between 22:00 and 06:00 on Friday in Asia/Tokyo"
    )
