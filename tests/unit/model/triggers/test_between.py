from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime.errors import InvalidTime, InvalidTrigger
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.combined import Between
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from tests.support.profiles import tries
from tests.support.triggers import DAY, INSTANTS, LEAVES, walk

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


@tries(0.6)
@given(trigger=LEAVES, start=INSTANTS, length=st.integers(0, 40), after=INSTANTS)
def test_it_is_the_part_of_the_trigger_that_lies_between(
    trigger: Trigger, start: int, length: int, after: int
) -> None:
    end = start + length * DAY // 4
    rule = Between(trigger, start, end)
    walked = walk(trigger, max(after, start - 1), until=end, most=3_000)
    assert walk(rule, after, most=3_000) == walked
    assert rule.count(after, end + DAY) in (None, len(walked))


def test_start_and_end_are_included() -> None:
    rule = cron("0 * * * *").between(NOON, NOON + timedelta(hours=1))
    assert rule.next_after(NOON - timedelta(days=9)) == NOON
    assert rule.next_after(NOON) == NOON + timedelta(hours=1)
    assert rule.next_after(NOON + timedelta(hours=1)) is None


def test_how_many_there_are_is_known_without_a_walk_where_the_trigger_knows() -> None:
    rule = every("1h", start=NOON).between(end=NOON + timedelta(days=365))
    assert rule.count(0, 2**62) == 365 * 24 + 1


def test_what_can_never_be_is_refused() -> None:
    with pytest.raises(InvalidTrigger, match="must not lie before start"):
        cron("0 * * * *").between(NOON, NOON - timedelta(seconds=1))
    with pytest.raises(InvalidTrigger, match="needs a start or an end"):
        cron("0 * * * *").between()


@pytest.mark.parametrize("name", ["start", "end"])
@pytest.mark.parametrize("moment", [datetime(2025, 1, 1), "2025-01-01", 5])  # noqa: DTZ001 - the mistake under test
def test_a_start_or_end_must_be_aware(name: str, moment: Any) -> None:
    with pytest.raises(InvalidTime, match=f"^{name} "):
        cron("0 * * * *").between(**{name: moment})


def test_it_is_said_in_english() -> None:
    assert cron("@daily").between(NOON, NOON).describe() == (
        "at 00:00 every day, UTC, from 2025-01-01 12:00:00 UTC, until 2025-01-01 12:00:00 UTC"
    )
