from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from duetime.model.schedule.files import read_trigger, written_trigger
from duetime.model.time import from_datetime, to_datetime
from duetime.model.triggers.base import NoOccurrence
from duetime.model.triggers.rrule import RRule, rrule
from duetime.model.triggers.specs import trigger_from_spec, trigger_from_text, trigger_to_text
from tests.support.triggers import moment, walk

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2025, 1, 31, 9, tzinfo=BERLIN)
DAILY = "FREQ=DAILY;UNTIL=20250205"


def told(trigger: RRule, after: str = "2025-01-01", count: int = 20) -> list[str]:
    found = walk(trigger, from_datetime(moment(after)), most=count)
    return [f"{to_datetime(due).astimezone(ZoneInfo(trigger.tz)):%m-%d %H:%M}" for due in found]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("EXDATE:20250201T090000", "01-31 09:00, 02-02 09:00, 02-03 09:00, 02-04 09:00, 02-05 09:00"),
        ("EXDATE:20250201T080000Z,20250205T080000Z", "01-31 09:00, 02-02 09:00, 02-03 09:00, 02-04 09:00"),
        (
            "EXDATE;TZID=America/New_York:20250201T030000\nEXDATE;VALUE=DATE:20250202",
            "01-31 09:00, 02-03 09:00, 02-04 09:00, 02-05 09:00",
        ),
        (
            "EXDATE:20250201,20250202,20250203,20250204\nEXDATE:20250131T090000",
            "02-05 09:00",
        ),
        # What the rule does not name, or what lies before the start, takes nothing away.
        (
            "EXDATE:20250201T080000,20250101",
            "01-31 09:00, 02-01 09:00, 02-02 09:00, 02-03 09:00, 02-04 09:00, 02-05 09:00",
        ),
        (
            "EXDATE:20250201,20250203,20250204,20250205\nRDATE:20250202T070000,20250203T070000,20250210",
            "01-31 09:00, 02-02 07:00, 02-02 09:00, 02-10 09:00",
        ),
        (
            "EXDATE:20250201,20250202,20250203,20250204,20250205,20250302\nRDATE;TZID=Asia/Tokyo:20250301T000000\nRDATE:20250301T000000Z,20250302T000000",
            "01-31 09:00, 02-28 16:00, 03-01 01:00",
        ),
    ],
)
def test_dates_are_taken_away_and_added_in_their_own_zones(lines: str, expected: str) -> None:
    assert ", ".join(told(rrule(f"{DAILY}\n{lines}", start=START))) == expected


def test_they_are_read_as_calendars_write_them() -> None:
    text = (
        'EXDATE;TZID="Europe/Berlin":20250201T090000,\r\n 20250202T090000\r\n\r\n'
        "rrule:freq=daily;until=20250205\r\nexdate;value=date-time:20250203t080000z\r\nRDATE;VALUE=DATE:20250301"
    )
    trigger = rrule(text, start=START)
    assert told(trigger) == ["01-31 09:00", "02-04 09:00", "02-05 09:00", "03-01 09:00"]
    assert trigger.rule.splitlines() == [
        "FREQ=DAILY;UNTIL=20250205",
        "EXDATE;TZID=Europe/Berlin:20250201T090000",
        "EXDATE;TZID=Europe/Berlin:20250202T090000",
        "EXDATE:20250203T080000Z",
        "RDATE;VALUE=DATE:20250301",
    ]


def test_they_may_be_indented_as_in_code() -> None:
    text = """
        EXDATE:20250201T090000,
          20250202T090000
        FREQ=DAILY;UNTIL=20250205
        RDATE:20250301
    """
    assert told(rrule(text, start=START))[1:] == ["02-03 09:00", "02-04 09:00", "02-05 09:00", "03-01 09:00"]


def test_a_date_means_the_instant_at_which_the_rule_comes_when_clocks_change() -> None:
    nightly = datetime(2025, 1, 1, 2, 30, tzinfo=BERLIN)
    spring = rrule("FREQ=DAILY\nEXDATE:20250330T023000", start=nightly)
    assert told(spring, "2025-03-28T12:00", 2) == ["03-29 02:30", "03-31 02:30"]
    autumn = rrule("FREQ=DAILY\nEXDATE:20251026T023000", start=nightly)
    assert told(autumn, "2025-10-24T12:00", 2) == ["10-25 02:30", "10-27 02:30"]
    added = rrule("FREQ=YEARLY\nRDATE:20250330T021500,20251026T021500,20251026T011500Z", start=nightly)
    found = walk(added, from_datetime(nightly), most=3)
    assert [to_datetime(due) for due in found] == [
        moment("2025-03-30T01:00"),
        moment("2025-10-26T00:15"),
        moment("2025-10-26T01:15"),
    ]
    again = datetime(2025, 10, 26, 2, 30, fold=1, tzinfo=BERLIN)
    assert told(rrule("FREQ=DAILY\nEXDATE:20251026T023000", start=again), count=1) == ["10-27 02:30"]


def test_a_whole_day_is_taken_from_a_rule_that_comes_often_in_one_step() -> None:
    trigger = rrule("FREQ=SECONDLY\nEXDATE:20250201", start=START)
    assert told(trigger, "2025-01-31T22:59:59", 1) == ["02-02 00:00"]


def test_a_search_that_is_no_proof_hides_no_date_that_is_added() -> None:
    leap = datetime(2000, 2, 29, 9, tzinfo=BERLIN)
    rule = "FREQ=YEARLY;INTERVAL=100;BYMONTH=2;BYMONTHDAY=29"
    soon, late = (rrule(f"{rule}\nRDATE:{year}0101T000000Z", start=leap) for year in (2030, 8000))
    assert soon.first(from_datetime(START)) == from_datetime(moment("2030-01-01"))
    # The rule comes in 2400, which is further than a search looks at once.
    found, looks = late.first(from_datetime(START)), 0
    while isinstance(found, NoOccurrence):
        assert not found.proved
        found, looks = late.first(found.through), looks + 1
    assert looks
    assert to_datetime(found).year == 2400


def test_the_dates_are_described_and_stored() -> None:
    text = "FREQ=DAILY\nEXDATE;VALUE=DATE:20250201\nEXDATE:20250204T080000Z\nRDATE;TZID=Asia/Tokyo:20250301T000000"
    trigger = rrule(text, start=START)
    assert trigger.describe() == (
        "FREQ=DAILY, except on 2025-02-01, 2025-02-04 09:00:00, also on 2025-02-28 16:00:00, "
        "from 2025-01-31 09:00:00, Europe/Berlin"
    )
    many = rrule("FREQ=DAILY\nEXDATE:" + ",".join(f"202502{day:02}" for day in range(1, 6)), start=START)
    assert "except on 2025-02-01, 2025-02-02, 2025-02-03 and 2 more, from" in many.describe()
    assert trigger.to_spec()["rule"] == text
    for back in (
        trigger_from_spec(trigger.to_spec()),
        trigger_from_text(trigger_to_text(trigger)),
        read_trigger(written_trigger(trigger, name="x"), name="x"),
    ):
        assert back == trigger
        assert walk(back, 0, most=50) == walk(trigger, 0, most=50)
    assert written_trigger(trigger, name="x") == {
        "rrule": text,
        "tz": "Europe/Berlin",
        "start": "2025-01-31T08:00:00+00:00",
    }


def test_a_start_in_a_gap_moves_between_databases() -> None:
    trigger = rrule("FREQ=DAILY", start=datetime(2025, 3, 30, 2, 30, tzinfo=BERLIN))
    written = written_trigger(trigger, name="x")
    assert read_trigger(written, name="x") == trigger
    assert "trigger" in written
