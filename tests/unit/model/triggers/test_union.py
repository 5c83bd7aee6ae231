from __future__ import annotations

from hypothesis import given, strategies as st

from duetime.model.time import SECOND
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.combined import Union
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from tests.support.profiles import tries
from tests.support.triggers import BEGIN, DAY, INSTANTS, LEAVES, walk


@tries(0.6)
@given(parts=st.lists(LEAVES, min_size=1, max_size=4), after=INSTANTS)
def test_it_is_the_sorted_merge_of_its_parts(parts: list[Trigger], after: int) -> None:
    until = after + 10 * DAY
    merged = sorted({due for part in parts for due in walk(part, after, until=until, most=3_000)})
    assert walk(Union(tuple(parts)), after, until=until, most=9_000) == merged


def test_it_is_written_with_a_bar() -> None:
    trigger = cron("0 9 * * MON-FRI") | cron("0 11 * * SAT,SUN")
    assert isinstance(trigger, Union)
    assert trigger.describe() == ("at 09:00 on weekdays, UTC; or at 11:00 on weekends, UTC")


def test_it_is_shown_in_the_zone_of_its_first_part() -> None:
    assert (cron("0 9 * * *", tz="Asia/Tokyo") | cron("0 9 * * *")).tz == "Asia/Tokyo"


def test_a_part_that_has_ended_leaves_the_others() -> None:
    trigger = At((BEGIN,)) | At((BEGIN + 1, BEGIN + 2))
    assert walk(trigger, BEGIN) == [BEGIN + 1, BEGIN + 2]
    assert trigger.after(BEGIN + 2) is None


def test_a_job_falls_due_as_its_own_part_says() -> None:
    jittered = At((BEGIN,)).jitter("1h").seeded("nightly")
    trigger = jittered | At((BEGIN + SECOND,))
    assert trigger.due(BEGIN) == jittered.due(BEGIN) > BEGIN
    assert trigger.due(BEGIN + SECOND) == BEGIN + SECOND
    assert (jittered | At((BEGIN,))).due(BEGIN) == BEGIN


def test_it_says_how_several_are_grouped() -> None:
    assert ((every("1h") & every("2h")) | every("3h")).describe() == (
        "(every hour; only when also every 2 hours); or every 3 hours"
    )
