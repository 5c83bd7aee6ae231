from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from duetime.model.time import LATEST, LONGEST_DURATION, SECOND
from duetime.model.triggers.at import At
from duetime.model.triggers.combined import Intersection
from duetime.model.triggers.counting import common_triggers
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import Every, every
from tests.support.triggers import walk

MS = 1_000
GRIDS = st.builds(
    Every,
    interval=st.integers(1, 12).map(lambda number: number * MS),
    start=st.integers(0, 12 * MS) | st.integers(0, 12).map(lambda number: number * MS),
    end=st.none() | st.integers(0, 600 * MS),
)


@given(parts=st.lists(GRIDS, min_size=1, max_size=3))
def test_intervals_have_in_common_what_is_on_all_of_their_grids(parts: list[Every]) -> None:
    until = 700 * MS
    common = set.intersection(*(set(walk(part, -1, until=until, most=1_000)) for part in parts))
    found = common_triggers(parts)
    assert len(found) <= 1
    assert [at for part in found for at in walk(part, -1, until=until, most=1_000)] == sorted(common)


def test_what_meets_less_than_once_in_a_hundred_years_is_named_one_by_one() -> None:
    rare = common_triggers(
        (Every(interval=LONGEST_DURATION - 1, start=7), Every(interval=LONGEST_DURATION - 2, start=7))
    )
    assert rare == (At((7,)),)
    never = common_triggers(
        (Every(interval=LONGEST_DURATION, start=0), Every(interval=LONGEST_DURATION - 1, start=LATEST))
    )
    assert never == ()


def test_an_interval_meets_a_cron_rule_on_whole_seconds() -> None:
    rule = cron("* * * * *")
    assert common_triggers((rule, Every(interval=1_999 * MS, start=0))) == (
        Every(interval=1_999 * SECOND, start=0, end=LATEST),
        rule,
    )
    assert common_triggers((rule, Every(interval=SECOND, start=1))) == ()
    assert Intersection((rule, Every(interval=SECOND, start=1))).after(0) is None


def test_an_interval_without_a_start_is_left_as_it_is() -> None:
    parts = (every("1h"), every("2h", start=datetime(2025, 1, 1, tzinfo=UTC)))
    assert every("1h") in common_triggers(parts)
