from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime.errors import InvalidTime, InvalidTrigger
from duetime.model.triggers.at import at
from duetime.model.triggers.specs import trigger_from_spec

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def test_one_moment_comes_once() -> None:
    trigger = at(NOON)
    assert trigger.next_after(NOON - timedelta(days=1)) == NOON
    assert trigger.next_after(NOON - timedelta(microseconds=1)) == NOON
    assert trigger.next_after(NOON) is None


def test_many_moments_come_in_order_and_once_each() -> None:
    later, latest = NOON + timedelta(hours=1), NOON + timedelta(hours=2)
    trigger = at([latest, NOON, later, NOON])
    assert [trigger.next_after(moment) for moment in (NOON, later, latest)] == [later, latest, None]
    assert trigger == at(iter([NOON, later, latest]))


def test_the_same_moment_in_two_zones_is_equal() -> None:
    assert at(NOON) == at(datetime.fromisoformat("2025-01-01T21:00+09:00"))


def test_it_is_read_back_from_its_spec() -> None:
    trigger = at([NOON, NOON + timedelta(microseconds=1)])
    assert trigger_from_spec(trigger.to_spec()) == trigger


def test_it_is_said_in_english() -> None:
    assert at(NOON).describe() == "at 2025-01-01 12:00:00, UTC"
    many = at([NOON + timedelta(days=number) for number in range(5)])
    assert many.describe().endswith(" and 2 more, UTC")


@pytest.mark.parametrize(
    "moments",
    [
        datetime(2025, 1, 1),  # noqa: DTZ001 - the mistake under test
        [NOON, datetime(2025, 1, 1)],  # noqa: DTZ001 - the mistake under test
        datetime(1969, 12, 31, tzinfo=UTC),
        datetime(9999, 1, 1, tzinfo=UTC),
        NOON.date(),
        "2025-01-01T12:00Z",
        1_735_732_800,
        None,
    ],
)
def test_only_aware_datetimes_in_range_are_taken(moments: Any) -> None:
    with pytest.raises(InvalidTime, match="moment"):
        at(moments)


def test_the_bad_one_of_many_is_named() -> None:
    with pytest.raises(InvalidTime, match=r"^moment 2 "):
        at([NOON, datetime(2025, 1, 1)])  # noqa: DTZ001 - the mistake under test


def test_no_moments_and_too_many_are_refused() -> None:
    with pytest.raises(InvalidTrigger, match="at least one and at most 10000"):
        at([])
    with pytest.raises(InvalidTrigger, match="at most 10000"):
        at(NOON for _ in iter(int, 1))
