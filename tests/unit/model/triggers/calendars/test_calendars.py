"""What holds for calendars of every kind."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime import calendars
from duetime.errors import InvalidTrigger
from duetime.model.time import from_datetime
from duetime.model.triggers.calendars import Calendar, JoinedCalendars
from duetime.model.triggers.specs import _read
from tests.support.profiles import tries
from tests.support.triggers import CALENDARS, DAY, INSTANTS


def calendar_from_spec(spec: Any) -> Calendar:
    """Read a calendar as the spec of a trigger has it."""
    calendar: Calendar = _read(spec, "calendar", 0)
    return calendar


@given(calendar=CALENDARS)
def test_a_calendar_survives_json(calendar: Calendar) -> None:
    restored = calendar_from_spec(json.loads(json.dumps(calendar.to_spec())))
    assert restored == calendar
    assert restored.describe() == calendar.describe()


@tries(2)
@given(calendar=CALENDARS, instant=INSTANTS, share=st.floats(0, 1))
def test_what_is_excluded_stays_so_until_its_end(calendar: Calendar, instant: int, share: float) -> None:
    end = calendar.until(instant)
    assert (end is None) is (calendar.why(instant) is None)
    if end is not None:
        assert end > instant
        inside = instant + int((end - 1 - instant) * share)
        assert calendar.why(inside) is not None
        assert calendar.why(end - 1) is not None


@tries(2)
@given(one=CALENDARS, two=CALENDARS, instant=INSTANTS)
def test_joined_calendars_exclude_what_either_does(one: Calendar, two: Calendar, instant: int) -> None:
    joined = one | two
    assert (joined.until(instant) is None) is (one.until(instant) is None and two.until(instant) is None)


@given(calendar=CALENDARS, instant=INSTANTS)
def test_a_zone_is_given_once(calendar: Calendar, instant: int) -> None:
    placed = calendar.placed("Asia/Tokyo")
    assert placed.placed("Europe/Riga") == placed
    assert "in Asia/Tokyo" not in placed.describe(known_tz="Asia/Tokyo")


def test_joining_is_flat_and_bounded() -> None:
    spans = [
        calendars.blackout(f"{number // 60:02}:{number % 60:02}", f"{number // 60:02}:{number % 60 + 1:02}")
        for number in range(50)
    ]
    joined = JoinedCalendars(tuple(spans))
    assert JoinedCalendars((JoinedCalendars(tuple(spans[:25])), JoinedCalendars(tuple(spans[25:])))) == joined
    with pytest.raises(InvalidTrigger, match=r"from 1 to 50 calendars can be joined, not 51"):
        joined | calendars.weekends()
    with pytest.raises(InvalidTrigger, match=r"not 0"):
        JoinedCalendars(())


@pytest.mark.parametrize("other", [5, None, [], "SAT"])
def test_only_calendars_are_joined(other: Any) -> None:
    with pytest.raises(InvalidTrigger, match=r"such as calendars\.weekends\(\)"):
        calendars.weekends() | other


def test_the_stored_form_does_not_change() -> None:
    free = calendars.weekends() | calendars.blackout("22:00", "06:00", days="FRI", tz="Asia/Tokyo")
    assert free.to_spec() == {
        "type": "joined",
        "parts": [
            {"type": "weekdays", "days": [5, 6]},
            {"type": "window", "start": 79_200, "end": 21_600, "days": [4], "tz": "Asia/Tokyo"},
        ],
    }


WEEKEND = {"type": "weekdays", "days": [5, 6]}


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        {},
        {"type": None},
        {"type": ["joined"]},
        {"type": "moon"},
        # A date of YAML's, where its text belongs.
        {"type": "holidays", "dates": {date(2030, 12, 25): "Christmas"}, "tz": "UTC"},
        {"type": "weekdays"},
        {"type": "weekdays", "days": 5},
        {"type": "weekdays", "days": []},
        {"type": "weekdays", "days": [7]},
        {"type": "weekdays", "days": [True]},
        {"type": "weekdays", "days": [1.0]},
        {"type": "weekdays", "days": [[]]},
        {"type": "weekdays", "days": list(range(7))},
        {"type": "weekdays", "days": [5], "tz": "Mars/Olympus"},
        {"type": "weekdays", "days": [5], "tz": 5},
        {"type": "weekdays", "days": [5], "_zone": None},
        {"type": "holidays"},
        {"type": "holidays", "dates": []},
        {"type": "holidays", "dates": {}},
        {"type": "holidays", "dates": {"soon": ""}},
        {"type": "holidays", "dates": {"2030-02-30": ""}},
        {"type": "holidays", "dates": {"2030-12-25": 5}},
        {"type": "holidays", "dates": {"2030-12-25": "x" * 101}},
        {"type": "window", "start": 0},
        {"type": "window", "start": -1, "end": 5},
        {"type": "window", "start": 0, "end": 86_401},
        {"type": "window", "start": 5, "end": 5},
        {"type": "window", "start": 0, "end": 86_400},
        {"type": "window", "start": "22:00", "end": 5},
        {"type": "span", "start": 5},
        {"type": "span", "start": 5, "end": 5},
        {"type": "span", "start": 5, "end": "later"},
        {"type": "joined"},
        {"type": "joined", "parts": []},
        {"type": "joined", "parts": [None]},
        {"type": "joined", "parts": [WEEKEND] * 51},
        {"type": "joined", "parts": {"0": WEEKEND}},
        {"type": "joined", "parts": [WEEKEND], "more": 5},
        # Joined calendars are stored flat, so that nothing is read deeper than that.
        {"type": "joined", "parts": [{"type": "joined", "parts": [WEEKEND]}]},
    ],
)
def test_anything_else_is_refused(spec: Any) -> None:
    with pytest.raises(InvalidTrigger):
        calendar_from_spec(spec)


def test_days_in_a_row_are_passed_in_one_step() -> None:
    monday = from_datetime(datetime(2030, 7, 1, tzinfo=UTC))
    summer = calendars.holidays([date(2030, 7, 1) + timedelta(days=number) for number in range(60)])
    assert summer.until(monday + 1) == monday + 60 * DAY
    assert calendars.weekdays("MON-FRI").until(monday + 1) == monday + 5 * DAY
    assert calendars.weekends().until(monday - 2 * DAY) == monday
