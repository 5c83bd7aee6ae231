from __future__ import annotations

import builtins
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import dateutil.rrule
import pytest
from hypothesis import assume, given, strategies as st

from duetime.errors import InvalidTime, InvalidTrigger, MissingDriver
from duetime.model.time import LATEST, from_datetime, to_datetime
from duetime.model.triggers.base import NEVER, NoOccurrence, SearchBudget, Trigger
from duetime.model.triggers.every import every
from duetime.model.triggers.rrule import rrule
from duetime.model.triggers.specs import trigger_from_spec
from tests.support.profiles import tries
from tests.support.triggers import moment, walk

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2025, 1, 31, 9, tzinfo=BERLIN)


def told(trigger: Trigger, after: str = "2025-01-01", count: int = 3) -> list[str]:
    found = walk(trigger, from_datetime(moment(after)), most=count)
    return [f"{to_datetime(due).astimezone(ZoneInfo(trigger.tz)):%Y-%m-%d %H:%M}" for due in found]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=MONTHLY", ["2025-01-31 09:00", "2025-03-31 09:00", "2025-05-31 09:00"]),
        ("FREQ=MONTHLY;BYDAY=-1FR", ["2025-01-31 09:00", "2025-02-28 09:00", "2025-03-28 09:00"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR", ["2025-01-31 09:00", "2025-02-10 09:00", "2025-02-14 09:00"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", ["2028-02-29 09:00", "2032-02-29 09:00", "2036-02-29 09:00"]),
        ("FREQ=DAILY;BYHOUR=9,17", ["2025-01-31 09:00", "2025-01-31 17:00", "2025-02-01 09:00"]),
        ("FREQ=HOURLY;INTERVAL=5;BYDAY=MO", ["2025-02-03 02:00", "2025-02-03 07:00", "2025-02-03 12:00"]),
        ("FREQ=DAILY;UNTIL=20250201", ["2025-01-31 09:00", "2025-02-01 09:00"]),
        ("FREQ=DAILY;UNTIL=20250201T090000", ["2025-01-31 09:00", "2025-02-01 09:00"]),
        ("FREQ=DAILY;UNTIL=20250201T075959Z", ["2025-01-31 09:00"]),
        (
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            ["2025-01-31 09:00", "2025-02-28 09:00", "2025-03-31 09:00"],
        ),
    ],
)
def test_rules_are_those_of_calendars(rule: str, expected: list[str]) -> None:
    assert told(rrule(rule, start=START)) == expected


def test_a_rule_may_be_written_as_in_a_file() -> None:
    assert rrule(" RRULE:freq=daily; ", start=START) == rrule("FREQ=DAILY", start=START)


def test_a_wall_time_in_a_gap_is_made_up_for_and_one_that_comes_twice_counts_once() -> None:
    trigger = rrule("FREQ=DAILY", start=datetime(2025, 1, 1, 2, 30, tzinfo=BERLIN))
    assert told(trigger, "2025-03-29T12:00", 2) == ["2025-03-30 03:00", "2025-03-31 02:30"]
    autumn = walk(trigger, from_datetime(moment("2025-10-25T12:00")), most=2)
    assert [to_datetime(due) for due in autumn] == [moment("2025-10-26T00:30"), moment("2025-10-27T01:30")]


def test_it_begins_at_its_start() -> None:
    assert rrule("FREQ=DAILY", start=START).next_after(START - timedelta(days=999)) == START
    assert told(rrule("FREQ=DAILY;BYHOUR=8", start=START))[0] == "2025-02-01 08:00"


FREQUENCIES = ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY"]


def listed(name: str, values: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    several = st.lists(values, min_size=1, max_size=3, unique=True)
    return st.just("") | several.map(lambda found: f";{name}={','.join(map(str, found))}")


PARTS = st.tuples(
    st.sampled_from(FREQUENCIES).map(lambda name: f"FREQ={name}"),
    st.integers(1, 5).map(lambda interval: f";INTERVAL={interval}"),
    listed("BYMONTH", st.integers(1, 12)),
    listed("BYMONTHDAY", st.integers(1, 31) | st.integers(-31, -1)),
    st.just("") | st.sampled_from([";BYDAY=MO", ";BYDAY=TU,FR,SU", ";BYDAY=MO,TU,WE,TH,FR"]),
    listed("BYHOUR", st.integers(0, 23)),
    listed("BYMINUTE", st.integers(0, 59)),
    st.sampled_from(["", ";WKST=SU", ";WKST=WE"]),
).map("".join)
STARTS = st.datetimes(datetime(2020, 1, 1), datetime(2024, 1, 1)).map(  # noqa: DTZ001 - the zone follows
    lambda start: start.replace(microsecond=0, tzinfo=UTC)
)


@tries(2)
@given(rule=PARTS, start=STARTS, ahead=st.integers(0, 3 * 365))
def test_it_agrees_with_a_walk_from_the_very_start(rule: str, start: datetime, ahead: int) -> None:
    try:
        trigger = rrule(rule, start=start)
    except InvalidTrigger:
        assume(False)
    after = start + timedelta(days=ahead)
    expected = []
    for found in dateutil.rrule.rrulestr(rule, dtstart=start):
        if found > after:
            expected.append(found)
        if len(expected) == 5:
            break
    assert [to_datetime(due) for due in walk(trigger, from_datetime(after), most=5)] == expected
    assert trigger_from_spec(trigger.to_spec()) == trigger


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (5, "a text such as"),
        ("X" * 1_001, "a text such as"),
        ("", "expected NAME=VALUE"),
        ("FREQ", "expected NAME=VALUE"),
        ("FREQ=", "expected NAME=VALUE"),
        ("FREQ=DAILY;;", "expected NAME=VALUE"),
        ("INTERVAL=2", "FREQ is needed, one of YEARLY"),
        ("FREQ=FORTNIGHTLY", "FREQ is needed, one of YEARLY"),
        ("FREQ=MINUTELY;INTERVAL=52560001", "expected 1 to 52560000"),
        ("FREQ=SECONDLY;INTERVAL=60;BYSECOND=5", "cannot be: its interval passes over"),
        ("FREQ=SECONDLY;BYSECOND=5;BYSETPOS=2", "cannot be: BYSETPOS chooses none"),
        ("FREQ=HOURLY;INTERVAL=168;BYDAY=TU", "never comes"),
        ("FREQ=DAILY\nRRULE:FREQ=DAILY", r"join two with rrule\("),
        ("FREQ=DAILY\nDTSTART:20250131T090000Z", "give the start as start="),
        ("FREQ=DAILY\nEXRULE:FREQ=WEEKLY", "take dates away with EXDATE"),
        ("EXDATE:20250131T090000Z", "expected NAME=VALUE"),
        ("FREQ=DAILY\nEXDATE:soon", "a date or time such as 20301231"),
        ("FREQ=DAILY\nEXDATE", "a date or time such as 20301231"),
        ("FREQ=DAILY\nEXDATE:20250230", "a date or time such as 20301231"),
        ("FREQ=DAILY\nEXDATE;VALUE=DATE:20250201T090000", "a date or time such as 20301231"),
        ("FREQ=DAILY\nRDATE;VALUE=PERIOD:20250201T090000/PT1H", "write for example RDATE;TZID="),
        ("FREQ=DAILY\nEXDATE;X-FOO=1:20250201", "write for example EXDATE;TZID="),
        ("FREQ=DAILY\nEXDATE;TZID=Mars/Olympus:20250201T090000", "unknown time zone"),
        ("FREQ=DAILY\nEXDATE;TZID=Europe/Riga:20250201T090000Z", "TZID goes with the time of a wall clock"),
        ("FREQ=DAILY\nEXDATE;TZID=Europe/Riga:20250201", "TZID goes with the time of a wall clock"),
        ("FREQ=DAILY\nRDATE:20250130T090000", "RDATE:20250130T090000 lies before the start"),
        ("FREQ=DAILY\nRDATE:20250131T075959Z", "RDATE:20250131T075959Z lies before the start"),
        ("FREQ=DAILY\nRDATE:" + ",".join(["20250201"] * 1_001), "at most 1,000 dates, not 1,001"),
        ("FREQ=DAILY;UNTIL=20250202\nEXDATE:20250131,20250201,20250202", "never comes"),
        ("FREQ=DAILY\nEXDATE:" + "2" * 100_000, "a text such as"),
        ("FREQ=DAILY;FREQ=DAILY", "given twice"),
        ("FREQ=DAILY;COUNT=3", r"rrule\(\.\.\.\)\.at_most\(10\)"),
        ("FREQ=DAILY;INTERVAL=0", "expected 1 to 36500"),
        ("FREQ=DAILY;INTERVAL=-1", "expected 1 to 36500"),
        ("FREQ=YEARLY;INTERVAL=101", "expected 1 to 100"),
        ("FREQ=DAILY;INTERVAL=" + "9" * 900, "expected 1 to 36500"),
        ("FREQ=DAILY;WKST=MONDAY", "expected one of MO"),
        ("FREQ=DAILY;BYDAY=MONDAY", "expected days such as MO"),
        ("FREQ=MONTHLY;BYDAY=0MO", "expected days such as MO"),
        ("FREQ=MONTHLY;BYDAY=54MO", "expected days such as MO"),
        ("FREQ=WEEKLY;BYDAY=1MO", "needs FREQ=MONTHLY or FREQ=YEARLY"),
        ("FREQ=DAILY;BYMONTH=13", "expected 1 to 12"),
        ("FREQ=DAILY;BYMONTH=0", "expected 1 to 12"),
        ("FREQ=DAILY;BYMONTHDAY=0", "expected 1 to 31, or -1 to -31 from the end"),
        ("FREQ=DAILY;BYHOUR=24", "expected 0 to 23"),
        ("FREQ=DAILY;BYHOUR=1,,2", "expected 0 to 23"),
        ("FREQ=DAILY;BYEASTER=0", "known parts are FREQ"),
        ("FREQ=DAILY;BYSETPOS=1", "it chooses among the days"),
        ("FREQ=DAILY;UNTIL=soon", "expected a date or time"),
        ("FREQ=DAILY;UNTIL=20300230", "expected a date or time"),
        ("FREQ=DAILY;UNTIL=20240101", "never comes"),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "never comes"),
        ("FREQ=DAILY;INTERVAL=7;BYDAY=MO", "never comes"),
        ("FREQ=HOURLY;INTERVAL=24;BYHOUR=8", "cannot be"),
        (f"FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE={','.join(map(str, range(60)))}", "100 times of day, not 180"),
    ],
)
def test_a_bad_rule_is_refused_with_its_part(rule: Any, problem: str) -> None:
    with pytest.raises(InvalidTrigger, match=problem):
        rrule(rule, start=START)


def test_the_start_must_be_aware_and_the_zone_known() -> None:
    with pytest.raises(InvalidTime, match=r"^start "):
        rrule("FREQ=DAILY", start=datetime(2025, 1, 1))  # noqa: DTZ001 - the mistake under test
    with pytest.raises(InvalidTrigger, match="unknown time zone"):
        rrule("FREQ=DAILY", start=START, tz="Mars/Olympus")


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "rrule"},
        {"type": "rrule", "rule": "FREQ=DAILY"},
        {"type": "rrule", "rule": "FREQ=DAILY", "start": "now"},
        {"type": "rrule", "rule": 5, "start": 5},
        {"type": "rrule", "rule": "FREQ=DAILY", "start": 5, "tz": None},
        {"type": "rrule", "rule": "FREQ=DAILY", "start": 5, "_zone": None},
    ],
)
def test_a_bad_spec_is_refused(spec: Any) -> None:
    with pytest.raises(InvalidTrigger):
        trigger_from_spec(spec)


def test_the_stored_form_does_not_change() -> None:
    assert rrule("RRULE:FREQ=DAILY", start=START).to_spec() == {
        "type": "rrule",
        "rule": "FREQ=DAILY",
        "start": from_datetime(START),
        "tz": "Europe/Berlin",
    }


def test_a_week_without_a_day_has_the_day_of_the_start() -> None:
    # Week 20 of 2025 begins on 12 May; 31 January is a Friday.
    for rule in ("FREQ=YEARLY;BYWEEKNO=20", "FREQ=MONTHLY;BYWEEKNO=20", "FREQ=WEEKLY;BYWEEKNO=20"):
        assert told(rrule(rule, start=START)) == ["2025-05-16 09:00", "2026-05-15 09:00", "2027-05-21 09:00"]
    assert told(rrule("FREQ=DAILY;BYWEEKNO=20", start=START))[:2] == ["2025-05-12 09:00", "2025-05-13 09:00"]
    named = rrule("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO,TU", start=START)
    assert told(named) == ["2025-05-12 09:00", "2025-05-13 09:00", "2026-05-11 09:00"]


def test_a_start_in_a_gap_comes_right_after_it_and_keeps_its_wall_time() -> None:
    trigger = rrule("FREQ=DAILY", start=datetime(2025, 3, 30, 2, 30, tzinfo=BERLIN))
    assert told(trigger) == ["2025-03-30 03:00", "2025-03-31 02:30", "2025-04-01 02:30"]
    assert trigger.describe() == "FREQ=DAILY, from 2025-03-30 02:30:00, Europe/Berlin"
    assert trigger_from_spec(trigger.to_spec()) == trigger
    assert told(trigger_from_spec(trigger.to_spec())) == told(trigger)
    weekly = rrule("FREQ=WEEKLY", start=datetime(2025, 3, 30, 2, 30, fold=1, tzinfo=BERLIN))
    assert told(weekly, count=2) == ["2025-03-30 03:00", "2025-04-06 02:30"]
    several = rrule("FREQ=DAILY;BYMINUTE=15,45", start=datetime(2025, 3, 30, 2, 30, tzinfo=BERLIN))
    assert told(several) == ["2025-03-30 03:00", "2025-03-31 02:15", "2025-03-31 02:45"]


def test_a_start_just_after_a_gap_stays_where_it_is() -> None:
    trigger = rrule("FREQ=DAILY", start=moment("2025-03-30T01:30"), tz=BERLIN)
    assert told(trigger, count=2) == ["2025-03-30 03:30", "2025-03-31 03:30"]


@pytest.mark.parametrize("minute", [0, 30])
def test_a_start_in_the_second_of_two_equal_hours_is_the_first_occurrence_all_the_same(minute: int) -> None:
    start = datetime(2025, 10, 26, 2, minute, fold=1, tzinfo=BERLIN)
    tomorrow = datetime(2025, 10, 27, 2, minute, tzinfo=BERLIN)
    daily = rrule("FREQ=DAILY", start=start)
    assert walk(daily, 0, most=2) == [from_datetime(start), from_datetime(tomorrow)]
    twice = rrule("FREQ=DAILY;BYMINUTE=0,30,59", start=start)
    later = [each for each in (0, 30, 59) if each >= minute]
    found = walk(twice, 0, most=len(later) + 1)
    assert [to_datetime(due) for due in found] == [
        *(start.replace(minute=each).astimezone(UTC) for each in later),
        tomorrow.replace(minute=0).astimezone(UTC),
    ]


def test_a_far_start_costs_no_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[datetime] = []
    original = dateutil.rrule.rrule.__iter__

    def counted(rule: Any) -> Any:
        for found in original(rule):
            taken.append(found)
            yield found

    trigger = rrule("FREQ=DAILY", start=datetime(1970, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(dateutil.rrule.rrule, "__iter__", counted)
    assert trigger.next_after(moment("2900-01-01T00:30")) == moment("2900-01-02T00:00")
    assert 1 <= len(taken) <= 2


@pytest.mark.parametrize("year", [1970, 2024, 2399, 2400, 5_000, 8_999])
def test_a_search_looks_no_further_than_five_hundred_years(
    monkeypatch: pytest.MonkeyPatch, year: int
) -> None:
    trigger = rrule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", start=datetime(1970, 1, 1, tzinfo=UTC))
    begins: list[datetime] = []
    original = dateutil.rrule.rrule.replace

    def remembering(rule: Any, *, dtstart: datetime) -> Any:
        begins.append(dtstart)
        return original(rule, dtstart=dtstart)

    monkeypatch.setattr(dateutil.rrule.rrule, "replace", remembering)
    trigger.next_after(datetime(year, 1, 1, tzinfo=UTC))
    assert [100 <= 9_999 - begin.year < 500 for begin in begins] == [True]


def test_time_has_an_end() -> None:
    trigger = rrule("FREQ=YEARLY;INTERVAL=100", start=START)
    assert trigger.after(LATEST) is None
    assert walk(trigger, from_datetime(START), most=200)[-1] <= LATEST


def test_asking_it_counts_as_many_steps_of_a_search() -> None:
    search, daily = SearchBudget(LATEST, 99), rrule("FREQ=DAILY", start=START)
    assert daily.seek(0, search) == from_datetime(START)
    assert search.left == 49
    daily.seek(0, search)
    assert daily.seek(7, search) == NoOccurrence(7)


def test_where_the_search_for_a_date_ends_nothing_is_proved() -> None:
    start = datetime(2000, 2, 29, tzinfo=UTC)
    rule = rrule("FREQ=YEARLY;INTERVAL=100;BYMONTH=2;BYMONTHDAY=29", start=start)
    instant = from_datetime(START)
    looks = 0
    while isinstance(found := rule.first(instant), NoOccurrence):
        assert instant < found.through < LATEST
        instant, looks = found.through, looks + 1
    assert looks > 0
    assert to_datetime(found) == start.replace(year=2400)
    over = rrule("FREQ=YEARLY;INTERVAL=100;BYMONTH=2;BYMONTHDAY=29;UNTIL=20010101T000000Z", start=start)
    assert over.first(from_datetime(START)) == NEVER


def test_it_combines_with_other_triggers() -> None:
    both = rrule("FREQ=DAILY", start=START) | every("1d", start=START + timedelta(hours=1))
    assert trigger_from_spec(both.at_most(3).to_spec()) == both.at_most(3)
    assert both.next_after(START) == START + timedelta(hours=1)


def test_without_dateutil_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "dateutil":
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingDriver, match=r'pip install "duetime\[rrule\]"'):
        rrule("FREQ=DAILY", start=START)


def test_it_is_described_by_the_rule_and_its_start() -> None:
    rule = rrule("RRULE:freq=daily;BYHOUR=9,17;UNTIL=20300101T000000Z", start=START)
    text = "FREQ=DAILY;BYHOUR=9,17;UNTIL=20300101T000000Z, from 2025-01-31 09:00:00, Europe/Berlin"
    assert rule.describe() == text
