from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from duetime import at, calendars, cron, every
from duetime.errors import InvalidTrigger
from duetime.model.schedule.files import read_trigger, written_trigger
from duetime.model.time import LATEST, SECOND, from_datetime, to_datetime
from duetime.model.triggers.base import NoOccurrence, SearchBudget, Trigger
from duetime.model.triggers.calendars import Calendar
from duetime.model.triggers.specs import trigger_from_spec
from tests.support.profiles import tries
from tests.support.triggers import DAY, INSTANTS, LEAVES, WHOLE_DAYS, ZONES, Slow, moment, walk

RIGA = "Europe/Riga"
HOLIDAYS = {date(2030, 5, 1): "Labour Day", date(2030, 5, 4): "", date(2030, 6, 24): "Jāņi"}
CLOSED = calendars.days_off(HOLIDAYS)


def told(trigger: Trigger, after: str, count: int = 3) -> list[str]:
    found = walk(trigger, from_datetime(moment(after)), most=count)
    return [f"{to_datetime(due).astimezone(ZoneInfo(RIGA)):%a %m-%d %H:%M}" for due in found]


def test_what_falls_on_a_day_off_comes_on_the_next_working_day_at_the_same_time() -> None:
    salaries = cron("0 9 1 * *", tz=RIGA).roll(CLOSED)
    # 1 May is a Wednesday and a holiday, 1 June a Saturday.
    assert told(salaries, "2030-04-15") == ["Thu 05-02 09:00", "Mon 06-03 09:00", "Mon 07-01 09:00"]


def test_or_on_the_previous_one() -> None:
    salaries = cron("0 9 1 * *", tz=RIGA).roll(CLOSED, to="previous")
    assert told(salaries, "2030-04-15") == ["Tue 04-30 09:00", "Fri 05-31 09:00", "Mon 07-01 09:00"]


def test_days_off_in_a_row_are_passed_together() -> None:
    # Wednesday 1 May, then a bridge to Saturday 4 May, which is a holiday and a weekend in one.
    closed = CLOSED | calendars.holidays([date(2030, 5, 2), date(2030, 5, 3)])
    assert told(cron("0 9 1-3 5 *", tz=RIGA).roll(closed), "2030-04-01", 1) == ["Mon 05-06 09:00"]
    back = cron("0 9 3-5 5 *", tz=RIGA).roll(closed, to="previous")
    assert told(back, "2030-04-01", 1) == ["Tue 04-30 09:00"]


def test_what_meets_on_a_day_comes_once_and_in_the_order_of_the_clock() -> None:
    daily = cron("0 9 * * *", tz=RIGA).roll(calendars.weekends())
    assert told(daily, "2030-06-14") == ["Fri 06-14 09:00", "Mon 06-17 09:00", "Tue 06-18 09:00"]
    mixed = (cron("0 15 * * SAT", tz=RIGA) | cron("0 9 * * SUN", tz=RIGA)).roll(calendars.weekends())
    assert told(mixed, "2030-06-14") == ["Mon 06-17 09:00", "Mon 06-17 15:00", "Mon 06-24 09:00"]


def test_a_moved_time_that_a_change_of_the_clock_swallows_or_repeats_comes_once() -> None:
    # On Sunday 31 March 2030 the clock skips 3:00 to 4:00 in Riga; on Sunday 27 October 3:00 to 4:00 comes twice.
    spring, autumn = (calendars.holidays([date(2030, month, day)]) for month, day in ((3, 30), (10, 26)))
    nightly = cron("30 3 30 3 *", tz=RIGA).roll(spring)
    assert told(nightly, "2030-01-01", 1) == ["Sun 03-31 04:00"]
    late = cron("30 3 26 10 *", tz=RIGA).roll(autumn)
    assert walk(late, from_datetime(moment("2030-10-01")), most=1) == [
        from_datetime(moment("2030-10-27T00:30"))
    ]
    # What comes twice on a Sunday comes once on the Monday.
    often = cron("*/30 3 27 10 *", tz=RIGA).roll(calendars.weekends())
    assert told(often, "2030-10-26") == ["Mon 10-28 03:00", "Mon 10-28 03:30", "Mon 10-27 03:00"]
    twice = at([moment("2030-10-27T00:40"), moment("2030-10-27T01:10")]).roll(calendars.weekends(tz=RIGA))
    assert told(twice, "2030-10-26") == ["Mon 10-28 03:10", "Mon 10-28 03:40"]
    back = cron("*/30 3 27 10 *", tz=RIGA).roll(calendars.weekdays("SUN"), to="previous")
    assert told(back, "2030-10-25", 2) == ["Sat 10-26 03:00", "Sat 10-26 03:30"]


def test_the_days_are_those_of_the_calendar_s_zone() -> None:
    start = datetime(2030, 6, 14, 23, 30, 0, 250_000, tzinfo=UTC)
    # That is Saturday, 2:30, in Riga.
    rule = every("7d", start=start).roll(calendars.weekends(tz=RIGA))
    assert rule.next_after(start) == start + timedelta(days=2)
    assert every("7d", start=start).roll(calendars.weekends()).next_after(start - timedelta(1)) == start


@tries(0.6)
@given(
    trigger=LEAVES, calendar=WHOLE_DAYS, tz=ZONES, to=st.sampled_from(["next", "previous"]), after=INSTANTS,
    length=st.integers(1, 20),
)  # fmt: skip
def test_it_is_what_each_occurrence_becomes(
    *, trigger: Trigger, calendar: Calendar, tz: str, to: Any, after: int, length: int
) -> None:
    rule = trigger.roll(calendar.placed(tz), to=to)
    until = after + length * DAY
    sources = walk(trigger, after - 60 * DAY, until=until + 60 * DAY, most=30_000)
    moved = {by_the_calendar(source, rule.calendar, tz, 1 if to == "next" else -1) for source in sources}
    expected = sorted(one for one in moved if after < one <= until)
    assert walk(rule, after, until=until, most=30_000) == expected
    assert rule.last(after, until) == (expected[-1] if expected else None)


def by_the_calendar(source: int, calendar: Calendar, tz: str, step: int) -> int:
    """Move one occurrence, by looking at each noon; a fixed time of cron says what the clock does to it."""
    place = ZoneInfo(tz)
    local = to_datetime(source).astimezone(place)
    day = local.date()
    while calendar.why(from_datetime(datetime(day.year, day.month, day.day, 12, tzinfo=place))) is not None:
        day += timedelta(days=step)
    if day == local.date():
        return source
    fixed = cron(f"{local:%S %M %H} {day.day} {day.month} *", tz=tz)
    begin = from_datetime(datetime(day.year, day.month, day.day, tzinfo=place))
    found = fixed.after(begin - 1)
    assert found is not None
    return found + source % SECOND


def test_it_is_searched_with_others_and_ends_with_its_trigger() -> None:
    salaries = cron("0 9 15 * *", tz=RIGA).roll(CLOSED, to="previous")
    assert told(salaries & cron("0 9 * * FRI", tz=RIGA), "2030-01-01", 2) == [
        "Fri 02-15 09:00",
        "Fri 03-15 09:00",
    ]
    both = salaries | cron("0 9 1 * *", tz=RIGA).roll(CLOSED)
    assert told(both, "2030-05-03") == ["Wed 05-15 09:00", "Mon 06-03 09:00", "Fri 06-14 09:00"]
    end = datetime(2030, 6, 15, 9, tzinfo=ZoneInfo(RIGA))
    over = cron("0 9 15 * *", tz=RIGA).between(end=end).roll(CLOSED, to="previous")
    assert told(over, "2030-06-01") == ["Fri 06-14 09:00"]
    assert over.first(from_datetime(end)) == NoOccurrence(LATEST)
    cut = cron("0 9 15 * *", tz=RIGA).roll(CLOSED).between(end=end)
    assert told(cut, "2030-05-01") == ["Wed 05-15 09:00"]


def test_time_has_an_end() -> None:
    last = to_datetime(LATEST)
    for before in (timedelta(0), timedelta(hours=15)):
        closed = calendars.weekdays(f"{last - before:%a}")
        found = at(last - before).roll(closed).first(LATEST - 9 * DAY)
        assert isinstance(found, NoOccurrence)
        assert found.proved
        assert at(last - before).roll(closed, to="previous").next_after(
            last - timedelta(9)
        ) == last - before - timedelta(1)


def test_an_hour_that_comes_again_over_midnight_belongs_to_the_day_that_has_begun() -> None:
    # On Sunday 7 November 2010 the clock in St. John's was set back at 0:01, to Saturday 23:01.
    again = at(moment("2010-11-07T02:45")).roll(calendars.weekends(tz="America/St_Johns"))
    assert again.next_after(moment("2010-11-01")) == moment("2010-11-09T02:45")


def test_a_search_that_takes_many_steps_gets_on_and_proves_nothing() -> None:
    now = from_datetime(moment("2030-06-12T10:00"))
    rule = (Slow(SECOND, 3) & Slow(SECOND, 5)).roll(calendars.weekends(), to="previous")
    through = now
    for _ in range(40):
        found = rule.first(through)
        assert isinstance(found, NoOccurrence)
        assert not found.proved
        assert found.through >= through
        through = found.through
    assert through > now + DAY


class KnownUntil(Slow):
    """A rule of which nothing is known but that it does not come before a time."""

    def seek(self, instant: int, search: SearchBudget) -> NoOccurrence:
        del instant, search
        return NoOccurrence(self.rest)


@pytest.mark.parametrize(("to", "through"), [("next", "2030-06-16T12:00"), ("previous", "2030-06-14")])
def test_what_is_not_known_may_be_moved_back_before_where_it_begins(to: Any, through: str) -> None:
    rule = KnownUntil(SECOND, from_datetime(moment("2030-06-16T12:00"))).roll(calendars.weekends(), to=to)
    found = rule.first(from_datetime(moment("2030-06-12T10:00")))
    assert isinstance(found, NoOccurrence)
    assert abs(found.through - from_datetime(moment(through))) <= 1


def test_it_is_said_in_english_and_stored() -> None:
    rule = cron("0 9 15 * *", tz=RIGA).roll(CLOSED, to="previous").at_most(3)
    assert rule.describe().replace(cron("0 9 15 * *", tz=RIGA).describe(), "RULE") == (
        "RULE, moved to the previous working day (no work on Saturday and Sunday and on 2030-05-01, "
        "2030-05-04, 2030-06-24), at most 3 times"
    )
    assert (rule.times, rule.tz) == (3, RIGA)
    assert trigger_from_spec(rule.to_spec()) == rule
    assert read_trigger(written_trigger(rule, name="x"), name="x") == rule


@pytest.mark.parametrize(
    ("calendar", "to", "problem"),
    [
        (5, "next", "a calendar of whole days such as"),
        (calendars.blackout("12:00", "13:00"), "next", "a calendar of whole days such as"),
        (
            calendars.weekends() | calendars.blackout("12:00", "13:00"),
            "next",
            "a calendar of whole days such as",
        ),
        (calendars.weekends(), "nearest", "the 'next' or the 'previous' working day, not 'nearest'"),
        (
            calendars.weekends(tz="UTC") | calendars.holidays([date(2030, 1, 1)], tz=RIGA),
            "next",
            "of several zones",
        ),
        (
            calendars.weekends() | calendars.holidays([date(2030, 1, 1) + timedelta(n) for n in range(370)]),
            "next",
            "more than 366 days off in a row from 2030-01-01",
        ),
    ],
)
def test_what_cannot_be_moved_to_is_refused(calendar: Any, to: Any, problem: str) -> None:
    with pytest.raises(InvalidTrigger, match=problem):
        cron("0 9 * * *").roll(calendar, to=to)
