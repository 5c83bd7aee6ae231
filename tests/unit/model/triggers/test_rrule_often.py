from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, strategies as st

from duetime.errors import InvalidTrigger
from duetime.model.time import SECOND, from_datetime, to_datetime
from duetime.model.triggers.cron import cron
from duetime.model.triggers.preview import clock_change_note
from duetime.model.triggers.rrule import RRule, rrule
from duetime.model.triggers.specs import trigger_from_spec
from tests.support.profiles import tries
from tests.support.triggers import moment, walk

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2025, 1, 31, 9, 0, 7, tzinfo=BERLIN)


def told(trigger: RRule, after: datetime = START, count: int = 3) -> list[str]:
    found = walk(trigger, from_datetime(after) - 1, most=count)
    return [f"{to_datetime(due).astimezone(BERLIN):%Y-%m-%d %H:%M:%S}" for due in found]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=HOURLY", ["2025-01-31 09:00:07", "2025-01-31 10:00:07", "2025-01-31 11:00:07"]),
        ("FREQ=MINUTELY", ["2025-01-31 09:00:07", "2025-01-31 09:01:07", "2025-01-31 09:02:07"]),
        ("FREQ=SECONDLY", ["2025-01-31 09:00:07", "2025-01-31 09:00:08", "2025-01-31 09:00:09"]),
        (
            "FREQ=MINUTELY;INTERVAL=90",
            ["2025-01-31 09:00:07", "2025-01-31 10:30:07", "2025-01-31 12:00:07"],
        ),
        (
            "FREQ=MINUTELY;INTERVAL=20;BYHOUR=8,9;BYDAY=MO,FR",
            ["2025-01-31 09:00:07", "2025-01-31 09:20:07", "2025-01-31 09:40:07"],
        ),
        (
            "FREQ=MINUTELY;BYMINUTE=30;BYSECOND=0,15",
            ["2025-01-31 09:30:00", "2025-01-31 09:30:15", "2025-01-31 10:30:00"],
        ),
        (
            "FREQ=SECONDLY;INTERVAL=10;BYMINUTE=59",
            ["2025-01-31 09:59:07", "2025-01-31 09:59:17", "2025-01-31 09:59:27"],
        ),
        (
            "FREQ=HOURLY;BYMINUTE=0,20,40;BYSECOND=0;BYSETPOS=-1",
            ["2025-01-31 09:40:00", "2025-01-31 10:40:00", "2025-01-31 11:40:00"],
        ),
        (
            "FREQ=SECONDLY;BYHOUR=8;BYMONTH=2;BYMONTHDAY=29;BYMINUTE=0",
            ["2028-02-29 08:00:00", "2028-02-29 08:00:01", "2028-02-29 08:00:02"],
        ),
        ("FREQ=SECONDLY;UNTIL=20250131T080008Z", ["2025-01-31 09:00:07", "2025-01-31 09:00:08"]),
    ],
)
def test_rules_by_the_hour_minute_and_second(rule: str, expected: list[str]) -> None:
    trigger = rrule(rule, start=START)
    assert told(trigger) == expected
    assert trigger_from_spec(trigger.to_spec()) == trigger


def test_they_follow_the_clock_as_a_star_of_cron_does() -> None:
    minutely = rrule("FREQ=MINUTELY;INTERVAL=15", start=datetime(2025, 1, 1, tzinfo=BERLIN))
    hourly = rrule("FREQ=HOURLY;BYMINUTE=30", start=datetime(2025, 1, 1, tzinfo=BERLIN))
    for begin in ("2025-03-29T20:00", "2025-10-25T20:00"):
        after, until = (from_datetime(moment(begin) + timedelta(hours=hours)) for hours in (0, 9))
        for rule, same in ((minutely, "*/15 * * * *"), (hourly, "30 * * * *")):
            expected = walk(cron(same, tz="Europe/Berlin"), after, until=until)
            assert walk(rule, after, until=until) == expected
            for instant in range(after, until, 419_000_000):
                assert rule.after(instant) == cron(same, tz="Europe/Berlin").after(instant)
    nightly = rrule("FREQ=HOURLY;BYHOUR=2;BYMINUTE=15;BYSECOND=0", start=START)
    twice = [datetime(2025, 10, 26, 2, 15, fold=fold, tzinfo=BERLIN) for fold in (0, 1)]
    assert walk(nightly, from_datetime(moment("2025-10-25T12:00")), most=2) == [*map(from_datetime, twice)]
    first, second = (datetime(2025, 10, 26, 2, 30, fold=fold, tzinfo=BERLIN) for fold in (0, 1))
    notes = [clock_change_note(hourly, from_datetime(one)) for one in (first, second)]
    assert [note and note.rpartition("; ")[2] for note in notes] == [
        "both run, this is the first",
        "both run, this is the second",
    ]


SIZES = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
LOOKS: dict[str, Callable[[datetime], int]] = {
    "BYMONTH": lambda moment: moment.month,
    "BYMONTHDAY": lambda moment: moment.day,
    "BYHOUR": lambda moment: moment.hour,
    "BYMINUTE": lambda moment: moment.minute,
    "BYSECOND": lambda moment: moment.second,
}


def some(*values: int) -> st.SearchStrategy[set[int]]:
    return st.sets(st.sampled_from(values), min_size=1, max_size=4)


PARTS = st.fixed_dictionaries(
    {},
    optional={
        "BYMONTH": some(1, 2),
        "BYMONTHDAY": some(1, 2, 3, 30, 31),
        "BYHOUR": some(*range(24)),
        "BYMINUTE": some(*range(60)),
        "BYSECOND": some(*range(60)),
    },
)
STARTS = st.datetimes(datetime(2024, 1, 28), datetime(2024, 2, 5)).map(  # noqa: DTZ001 - the zone follows
    lambda start: start.replace(microsecond=0, tzinfo=UTC)
)


@tries(3)
@given(
    frequency=st.sampled_from([*SIZES]),
    interval=st.integers(1, 100) | st.integers(1, 4_000),
    parts=PARTS,
    start=STARTS,
    ahead=st.integers(-3_600, 3 * 86_400),
)
def test_they_agree_with_every_second_tried(
    frequency: str, interval: int, parts: dict[str, set[int]], start: datetime, ahead: int
) -> None:
    size = SIZES[frequency]
    own = {"BYMINUTE": {start.minute}} if size > 60 else {}
    own |= {"BYSECOND": {start.second}} if size > 1 else {}

    def named(moment: datetime) -> bool:
        periods = int(moment.timestamp()) // size - int(start.timestamp()) // size
        fits = (LOOKS[name](moment) in values for name, values in (own | parts).items())
        return moment >= start and periods % interval == 0 and all(fits)

    text = "".join(f";{name}={','.join(map(str, values))}" for name, values in parts.items())
    try:
        trigger = rrule(f"FREQ={frequency};INTERVAL={interval}{text}", start=start)
    except InvalidTrigger:
        assume(False)
    after = start + timedelta(seconds=ahead)
    tried = (after + timedelta(seconds=second) for second in range(1, 4_001))
    expected = [from_datetime(moment) for moment in tried if named(moment)]
    until = from_datetime(after) + 4_000 * SECOND
    assert walk(trigger, from_datetime(after), until=until, most=5_000) == expected
