from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime.errors import InvalidTime, InvalidTrigger, InvalidValue
from duetime.model.time import LATEST, from_datetime
from duetime.model.triggers.every import Every, every
from duetime.model.triggers.specs import trigger_from_spec

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def all_after(trigger: Every, moment: datetime) -> list[datetime]:
    found = []
    while (following := trigger.next_after(moment)) is not None:
        moment = following
        found.append(moment)
    return found


@pytest.mark.parametrize(
    "trigger",
    [
        every("15m"),
        every(900),
        every(timedelta(minutes=15)),
        every(minutes=15),
        every(minutes=14, seconds=60),
    ],
)
def test_an_interval_can_be_written_in_many_ways(trigger: Every) -> None:
    assert trigger == every("15 minutes")


def test_without_a_start_it_counts_from_the_moment_asked() -> None:
    assert every("15m").next_after(NOON) == NOON + timedelta(minutes=15)


def test_with_a_start_it_keeps_to_its_grid() -> None:
    trigger = every("15m", start=NOON)
    assert trigger.next_after(NOON - timedelta(days=400)) == NOON
    assert trigger.next_after(NOON) == NOON + timedelta(minutes=15)
    assert trigger.next_after(NOON + timedelta(minutes=44)) == NOON + timedelta(minutes=45)
    assert trigger.next_after(NOON + timedelta(minutes=45)) == NOON + timedelta(minutes=60)


def test_an_anchor_fixes_the_grid_once() -> None:
    trigger = every("15m").anchored(from_datetime(NOON))
    assert trigger.next_after(NOON + timedelta(minutes=31)) == NOON + timedelta(minutes=45)
    assert trigger.anchored(from_datetime(NOON + timedelta(minutes=1))) == trigger


def test_a_start_is_not_moved_by_an_anchor() -> None:
    assert every("15m", start=NOON).anchored(5) == every("15m", start=NOON)


def test_how_many_times_is_for_the_schedule_to_count() -> None:
    trigger = every("15m", start=NOON, times=10)
    assert trigger.times == 10
    assert trigger.next_after(NOON + timedelta(minutes=150)) == NOON + timedelta(minutes=165)


def test_the_end_is_the_last_moment_that_can_be_due() -> None:
    end = NOON + timedelta(minutes=45)
    assert all_after(every("15m", start=NOON, end=end), NOON)[-1] == end
    assert all_after(every("15m", start=NOON, end=end - timedelta(microseconds=1)), NOON)[-1] < end


def test_an_end_that_has_passed_leaves_nothing_to_come() -> None:
    trigger = every("15m", end=NOON)
    assert trigger.next_after(NOON) is None
    anchored = trigger.anchored(from_datetime(NOON))
    assert anchored.next_after(NOON - timedelta(days=1)) is None
    assert trigger_from_spec(anchored.to_spec()) == anchored


def test_it_goes_by_elapsed_time_through_a_clock_change() -> None:
    trigger = every(hours=24, start=datetime.fromisoformat("2025-03-29T12:00+01:00"))
    assert trigger.next_after(datetime.fromisoformat("2025-03-30T12:00+02:00")) == datetime.fromisoformat(
        "2025-03-30T13:00+02:00"
    )


def test_the_end_of_time_is_none() -> None:
    assert every("15m").after(LATEST) is None
    assert every(timedelta(days=36_525)).after(LATEST - 1) is None
    assert every("15m").anchored(LATEST).after(LATEST) is None


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"interval": "15m", "minutes": 15},
        {"interval": 0},
        {"interval": 0.0009},
        {"interval": -1},
        {"interval": True},
        {"interval": "soon"},
        {"interval": "101000w"},
        {"minutes": 0},
        {"minutes": -5, "hours": 1},
        {"minutes": "5"},
        {"minutes": True},
        {"hours": float("nan")},
        {"weeks": float("inf")},
        {"weeks": 1e308},
        {"days": 36_500, "weeks": 5_000},
        {"interval": "15m", "times": 0},
        {"interval": "15m", "times": -1},
        {"interval": "15m", "times": 1.5},
        {"interval": "15m", "times": True},
        {"interval": "15m", "times": 10**5_000},
        {"interval": "15m", "start": NOON, "end": NOON - timedelta(seconds=1)},
    ],
)
def test_a_bad_interval_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue) as caught:
        every(**options)
    assert re.search(r"must|every\(|use for example", str(caught.value))


@pytest.mark.parametrize("name", ["start", "end"])
@pytest.mark.parametrize("moment", [datetime(2025, 1, 1), "2025-01-01", 5])  # noqa: DTZ001 - the mistake under test
def test_a_start_or_end_must_be_aware(name: str, moment: Any) -> None:
    with pytest.raises(InvalidTime, match=f"^{name} "):
        every("15m", **{name: moment})


def test_the_shortest_interval_is_a_millisecond() -> None:
    assert every("1ms").interval == 1_000
    with pytest.raises(InvalidTrigger, match="1 ms"):
        every("999us")


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        (every("15m"), "every 15 minutes"),
        (every("1h"), "every hour"),
        (every("1h30m"), "every 1 hour 30 minutes"),
        (
            every("1d", start=NOON, end=NOON, times=1),
            "every day, from 2025-01-01 12:00:00 UTC, until 2025-01-01 12:00:00 UTC, 1 time",
        ),
        (every("1d", times=3), "every day, 3 times"),
    ],
)
def test_it_is_said_in_english(trigger: Every, text: str) -> None:
    assert trigger.describe() == text


MOMENTS = st.integers(0, 4 * 10**15)


@given(
    interval=st.integers(1_000, 10**12), start=MOMENTS, length=st.none() | st.integers(0, 10**15),
    instant=MOMENTS,
)  # fmt: skip
def test_every_time_is_on_the_grid_and_strictly_later(
    interval: int, start: int, length: int | None, instant: int
) -> None:
    trigger = Every(interval=interval, start=start, end=None if length is None else start + length)
    assert trigger_from_spec(trigger.to_spec()) == trigger
    due = trigger.after(instant)
    if due is None:
        assert length is not None
        return
    assert due > instant
    assert (due - start) % interval == 0
    assert due == start or due - interval <= instant
