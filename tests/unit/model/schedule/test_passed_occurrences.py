from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from duetime.calendars import blackout
from duetime.model.schedule import occurrences as module
from duetime.model.schedule.occurrences import OccurrenceSpan, PassedOccurrences, passed_occurrences
from duetime.model.time import SECOND
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.combined import Intersection, Union
from duetime.model.triggers.cron import Cron, cron
from duetime.model.triggers.every import Every
from duetime.model.triggers.rrule import RRule
from tests.support.triggers import walk
from tests.unit.model.schedule.firing_kit import HOUR, HOURLY, MINUTE, START, Counted

WEEK = 7 * 24 * HOUR


def test_where_nothing_has_passed_there_is_nothing_to_tell() -> None:
    assert passed_occurrences(HOURLY, after=START, until=START + HOUR - 1, latest=3) == PassedOccurrences(
        None, [], START + HOUR - 1
    )


def test_the_end_of_the_stretch_belongs_to_it_and_its_beginning_does_not() -> None:
    found = passed_occurrences(HOURLY, after=START, until=START + 2 * HOUR, latest=5)
    assert found == PassedOccurrences(None, [START + HOUR, START + 2 * HOUR], START + 2 * HOUR)


def test_without_a_list_everything_is_in_the_span() -> None:
    found = passed_occurrences(HOURLY, after=START - 1, until=START + 3 * HOUR)
    assert found == PassedOccurrences(OccurrenceSpan(START, START + 3 * HOUR, 4), [], START + 3 * HOUR)


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
    # There may be more occurrences than are walked over in one go.
    trigger = Counted(rule=rule, can_count=can_count)
    found = passed_occurrences(trigger, after=after, until=until, latest=latest, factor=2)
    earlier = everything[: max(0, len(everything) - latest)]
    span = OccurrenceSpan(earlier[0], earlier[-1], len(earlier)) if earlier else None
    assert found == PassedOccurrences(span, everything[len(earlier) :], until)


@pytest.mark.parametrize("rule", [Every(interval=SECOND, start=START), cron("* * * * * *", tz="Europe/Riga")])
@pytest.mark.parametrize("latest", [0, 1, 100])
def test_a_trigger_that_can_count_is_not_walked_through_a_week_of_seconds(rule: Trigger, latest: int) -> None:
    trigger = Counted(rule=rule)
    found = passed_occurrences(trigger, after=START, until=START + WEEK, latest=latest)
    assert found.earlier is not None
    assert found.earlier.count + len(found.latest) == WEEK // SECOND
    assert len(trigger.asked) < 200 + 3 * latest


def test_one_that_cannot_is_walked_over_a_part_and_the_rest_is_for_later() -> None:
    trigger = Counted(rule=Every(interval=SECOND, start=START), can_count=False)
    found = passed_occurrences(trigger, after=START - 1, until=START + WEEK, latest=100)
    most = module.MOST_WALKED
    last = START + (most - 1) * SECOND
    assert found == PassedOccurrences(OccurrenceSpan(START, last, most), [], last)
    assert len(trigger.asked) < most + 200


@pytest.mark.covers("combined-trigger-ends")
def test_none_is_lost_where_the_search_for_the_latest_runs_out_of_steps() -> None:
    # Never at the same time, which takes more steps to see than a search has.
    never = Intersection(
        (
            *(RRule(rule="FREQ=HOURLY;INTERVAL=2", start=HOUR * hour) for hour in range(10)),
            Every(interval=HOUR, start=0),
        )
    )
    instants = (START + MINUTE, START + 2 * MINUTE, START + 3 * MINUTE, START + 60 * HOUR - MINUTE)
    trigger, until, after = never | At(instants=instants), START + 60 * HOUR, START
    number = 0
    while after < until:
        found = passed_occurrences(trigger, after=after, until=until, latest=2)
        number += len(found.latest) + (found.earlier.count if found.earlier else 0)
        after = found.latest[-1] if found.latest else found.through
    assert number == len(instants)


FULL = START // MINUTE * MINUTE
COSTLY = [
    Union(tuple(cron("* * * * *", tz=zone) for zone in ("UTC", "Europe/Riga", "Asia/Tokyo", "Asia/Kabul"))),
    Every(interval=90 * SECOND, start=FULL) & cron("* * * * *", tz="Europe/Riga"),
    cron("* * * * * *") & cron("17 */7 * * * *", tz="Europe/Riga"),
    Every(interval=7 * SECOND, start=FULL) & cron("* * * * *"),
    RRule(rule="FREQ=HOURLY;BYMINUTE=0,20,40", start=START),
]


class Steps:
    """Counts what simple triggers are asked for, by what it costs."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        for kind in (Cron, Every, RRule):
            self._note(patch, kind)

    def _note(self, patch: pytest.MonkeyPatch, kind: type[Trigger]) -> None:
        original = kind.after

        def after(trigger: Trigger, instant: int) -> int | None:
            self.taken += trigger.cost
            return original(trigger, instant)

        patch.setattr(kind, "after", after)


@pytest.mark.parametrize("rule", COSTLY)
@pytest.mark.parametrize("latest", [0, 1, 50])
def test_where_each_takes_many_steps_the_steps_of_a_walk_are_bounded_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, rule: Trigger, latest: int
) -> None:
    until = START + WEEK
    everything = walk(rule, START, until=until, most=30_000)
    steps = Steps(monkeypatch)
    rule.after(START)
    # The first ones are listed, whatever they take.
    most = module.MOST_STEPS + (latest + 2) * 2 * steps.taken
    found, after, whole = 0, START, False
    while not whole:
        steps.taken = 0
        earlier, listed, through = passed_occurrences(rule, after=after, until=until, latest=latest)
        whole = through == until
        assert steps.taken <= most
        assert earlier is not None
        assert (earlier.first, earlier.last) == (everything[found], everything[found + earlier.count - 1])
        assert listed == (everything[len(everything) - latest :] if whole else [])
        found, after = found + earlier.count, earlier.last
    assert found + latest == len(everything)


def test_where_one_search_takes_all_the_steps_it_goes_on_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 1)
    rule = Every(interval=90 * SECOND, start=FULL) & cron("* * * * *")
    first = FULL + 180 * SECOND
    assert passed_occurrences(rule, after=START, until=START + WEEK, latest=2) == PassedOccurrences(
        OccurrenceSpan(first, first, 1), [], first
    )


@pytest.mark.parametrize(("behind", "whole"), [(5, True), (6, False)])
def test_a_walk_that_is_cut_off_leaves_all_that_may_be_wanted_for_later(
    monkeypatch: pytest.MonkeyPatch, behind: int, whole: bool
) -> None:
    monkeypatch.setattr(module, "MOST_WALKED", 3)
    trigger = Counted(rule=HOURLY, can_count=False)
    until = START + (3 + behind - 1) * HOUR
    found = passed_occurrences(trigger, after=START - 1, until=until, latest=5)
    assert (found.through == until) is whole
    assert found.earlier == OccurrenceSpan(START, START + 2 * HOUR, 3)
    assert len(found.latest) == (5 if whole else 0)
