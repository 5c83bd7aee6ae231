from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, strategies as st

from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.combined import Intersection
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from tests.support.profiles import tries
from tests.support.triggers import BEGIN, DAY, INSTANTS, LEAVES, walk


@tries(0.8)
@given(parts=st.lists(LEAVES, min_size=1, max_size=3), after=INSTANTS)
def test_it_is_what_its_parts_have_in_common(parts: list[Trigger], after: int) -> None:
    until = after + 10 * DAY
    common = set.intersection(*(set(walk(part, after, until=until, most=3_000)) for part in parts))
    assert walk(Intersection(tuple(parts)), after, until=until, most=9_000) == sorted(common)


SMALL = st.sets(st.integers(1, 60), min_size=1).map(lambda instants: At(tuple(instants)))


@given(parts=st.lists(SMALL, min_size=1, max_size=4))
def test_close_instants_are_told_apart(parts: list[At]) -> None:
    common = set.intersection(*(set(part.instants) for part in parts))
    assert walk(Intersection(tuple(parts)), 0) == sorted(common)


def test_friday_the_thirteenth() -> None:
    trigger = cron("0 0 13 * *") & cron("0 0 * * FRI")
    assert trigger.next_after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 2, 13, tzinfo=UTC)
    assert (
        trigger.describe() == "at 00:00 on the 13th of the month, UTC; only when also at 00:00 on Friday, UTC"
    )


def test_intervals_meet_on_their_common_grid() -> None:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    trigger = every("6h", start=start) & every("4h", start=start)
    assert trigger.next_after(start) == datetime(2025, 1, 1, 12, tzinfo=UTC)


def test_a_job_falls_due_when_the_latest_part_says() -> None:
    jittered = At((BEGIN,)).jitter("1h").seeded("nightly")
    assert (At((BEGIN,)) & jittered).due(BEGIN) == jittered.due(BEGIN) > BEGIN
