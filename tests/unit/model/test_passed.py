from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.calendars import blackout
from duetime.model import passed as module
from duetime.model.instants import SECOND
from duetime.model.occurrence import Span
from duetime.model.passed import Passed, passed
from duetime.model.triggers import At, Every, Trigger, cron
from tests.unit.model.firing_kit import HOUR, HOURLY, MINUTE, START, Counted

WEEK = 7 * 24 * HOUR


def test_where_nothing_has_passed_there_is_nothing_to_tell() -> None:
    assert passed(HOURLY, after=START, until=START + HOUR - 1, latest=3) == Passed(None, [])


def test_the_end_of_the_stretch_belongs_to_it_and_its_beginning_does_not() -> None:
    found = passed(HOURLY, after=START, until=START + 2 * HOUR, latest=5)
    assert found == Passed(None, [START + HOUR, START + 2 * HOUR])


def test_without_a_list_everything_is_in_the_span() -> None:
    found = passed(HOURLY, after=START - 1, until=START + 3 * HOUR)
    assert found == Passed(Span(START, START + 3 * HOUR, 4), [])


@pytest.mark.parametrize("can_count", [True, False])
@given(
    rule=st.sampled_from(
        [
            Every(interval=7 * MINUTE, start=START),
            cron("*/10 3 * * *", tz="Europe/Riga"),
            At(instants=(START, START + 1, START + 2 * HOUR, START + 30 * HOUR)),
            Every(interval=7 * MINUTE, start=START) | cron("*/10 3 * * *", tz="Europe/Riga"),
            cron("*/10 * * * *") & cron("* 3-5 * * *", tz="Europe/Riga"),
            cron("*/30 * * * *") - blackout("22:00", "06:00", tz="Europe/Riga"),
            (Every(interval=MINUTE, start=START) | At(instants=(START + 1,))).jitter("30s").at_most(3),
        ]
    ),
    after=st.integers(START - 2 * HOUR, START + 2 * HOUR),
    length=st.integers(0, 40 * HOUR),
    latest=st.integers(0, 12),
)
def test_it_tells_what_a_walk_over_everything_finds(
    can_count: bool, rule: Trigger, after: int, length: int, latest: int
) -> None:
    until = after + length
    everything: list[int] = []
    occurrence = rule.after(after)
    while occurrence is not None and occurrence <= until:
        everything.append(occurrence)
        occurrence = rule.after(occurrence)
    found = passed(Counted(rule=rule, can_count=can_count), after=after, until=until, latest=latest)
    earlier = everything[: max(0, len(everything) - latest)]
    span = Span(earlier[0], earlier[-1], len(earlier)) if earlier else None
    assert found == Passed(span, everything[len(earlier) :])


@pytest.mark.parametrize("rule", [Every(interval=SECOND, start=START), cron("* * * * * *", tz="Europe/Riga")])
@pytest.mark.parametrize("latest", [0, 1, 100])
def test_a_trigger_that_can_count_is_not_walked_through_a_week_of_seconds(rule: Trigger, latest: int) -> None:
    trigger = Counted(rule=rule)
    found = passed(trigger, after=START, until=START + WEEK, latest=latest)
    assert found.earlier is not None
    assert found.earlier.count + len(found.latest) == WEEK // SECOND
    assert len(trigger.asked) < 200 + 3 * latest


def test_one_that_cannot_is_walked_over_a_part_and_the_rest_is_for_later() -> None:
    trigger = Counted(rule=Every(interval=SECOND, start=START), can_count=False)
    found = passed(trigger, after=START - 1, until=START + WEEK, latest=100)
    most = module.MOST_WALKED
    assert found == Passed(Span(START, START + (most - 1) * SECOND, most), [], whole=False)
    assert len(trigger.asked) < most + 200


@pytest.mark.parametrize(("behind", "whole"), [(5, True), (6, False)])
def test_a_walk_that_is_cut_off_leaves_all_that_may_be_wanted_for_later(
    monkeypatch: pytest.MonkeyPatch, behind: int, whole: bool
) -> None:
    monkeypatch.setattr(module, "MOST_WALKED", 3)
    trigger = Counted(rule=HOURLY, can_count=False)
    found = passed(trigger, after=START - 1, until=START + (3 + behind - 1) * HOUR, latest=5)
    assert found.whole is whole
    assert found.earlier == Span(START, START + 2 * HOUR, 3)
    assert len(found.latest) == (5 if whole else 0)
