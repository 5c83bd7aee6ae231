"""Searches of combined triggers: what they find, what they prove, and what they remember."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from hypothesis import given, strategies as st

from duetime import calendars
from duetime.model.time import HOUR, LATEST, from_datetime, to_datetime
from duetime.model.triggers.at import At
from duetime.model.triggers.base import MOST_SEARCH_STEPS, NEVER, SEARCH_HORIZON, NoOccurrence, Trigger
from duetime.model.triggers.combined import Between, Except, Intersection, TriggerWrapper, Union
from duetime.model.triggers.cron import Cron, cron
from duetime.model.triggers.every import every
from duetime.model.triggers.rrule import rrule
from duetime.model.triggers.specs import trigger_from_spec
from duetime.model.triggers.working_days import Rolled
from tests.support.profiles import tries
from tests.support.triggers import BEGIN, DAY, INSTANTS, LEAVES, several, walk, wrapped

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
DAILY = cron("0 9 * * *")
NEVER_IN_ONE_ZONE = cron("0 0 * * *") & cron("30 0 * * *")
# No stretch of time in which one of the two comes is free of the other, so that it takes many steps to get on.
NEVER_IN_TWO_ZONES = cron("*/2 * * * * *") & cron("1-59/2 * * * * *", tz="Asia/Tokyo")

NEVERS = st.sampled_from(
    [
        NEVER_IN_ONE_ZONE,
        cron("0 0 * * *") & cron("30 0 * * *", tz="Europe/Riga"),
        cron("*/10 * * * *") & cron("5-55/10 * * * *", tz="Asia/Tokyo"),
        cron("0 9 * * *") - calendars.blackout("08:00", "10:00"),
    ]
).map(lambda never: trigger_from_spec(never.to_spec()))
COMBINED: st.SearchStrategy[Trigger] = st.recursive(
    LEAVES | NEVERS,
    lambda inner: several(Union)(inner) | several(Intersection)(inner) | wrapped(inner),
    max_leaves=6,
)


def everything(trigger: Trigger, after: int, until: int) -> set[int]:
    """Return all occurrences in `after < occurrence <= until`, by walking each simple trigger alone."""
    if isinstance(trigger, (Union, Intersection)):
        parts = [everything(part, after, until) for part in trigger.parts]
        return set.union(*parts) if isinstance(trigger, Union) else set.intersection(*parts)
    if isinstance(trigger, Except):
        inner = everything(trigger.trigger, after, until)
        return {at for at in inner if trigger.calendar.until(at) is None}
    if isinstance(trigger, Between):
        start, end = trigger.start or 0, LATEST if trigger.end is None else trigger.end
        return {at for at in everything(trigger.trigger, after, until) if start <= at <= end}
    if isinstance(trigger, Rolled):
        sources = everything(trigger.trigger, after - 60 * DAY, until + 60 * DAY)
        return {moved for at in sources if after < (moved := trigger.moved(at)) <= until}
    if isinstance(trigger, TriggerWrapper):
        return everything(trigger.trigger, after, until)
    return {*walk(trigger, after, until=until, most=100_000)}


@tries(1)
@given(trigger=COMBINED, after=INSTANTS, days=st.integers(1, 40), steps=st.integers(0, 400))
@pytest.mark.covers("combined-trigger-ends")
def test_a_search_in_pieces_finds_what_a_walk_over_everything_does(
    trigger: Trigger, after: int, days: int, steps: int
) -> None:
    until, found, at = after + days * DAY, set[int](), after
    while at < until:
        answer = trigger.first(at, until=until, steps=max(steps, 2 * trigger.cost))
        following = answer.through if isinstance(answer, NoOccurrence) else answer
        assert following > at
        if following == answer and following <= until:
            found.add(following)
        at = following
    assert found == everything(trigger, after, until)


@tries(0.4)
@given(trigger=COMBINED, instants=st.lists(INSTANTS, min_size=1, max_size=3), data=st.data())
def test_what_was_asked_before_changes_no_answer(
    trigger: Trigger, instants: list[int], data: st.DataObject
) -> None:
    for instant in instants:
        steps = data.draw(st.sampled_from([50, 500, MOST_SEARCH_STEPS]))
        answer = trigger.first(instant, steps=steps)
        fresh = trigger_from_spec(trigger.to_spec()).first(instant, steps=4 * MOST_SEARCH_STEPS)
        if isinstance(answer, NoOccurrence):
            assert isinstance(fresh, NoOccurrence) or fresh > answer.through
        else:
            assert answer == fresh


@pytest.mark.covers("combined-trigger-ends")
@pytest.mark.parametrize(
    "never", [NEVER_IN_ONE_ZONE, cron("0 0 * * *") & cron("30 0 * * *", tz="Asia/Tokyo")]
)
def test_a_part_that_never_comes_hides_no_other_wherever_the_two_are(never: Trigger) -> None:
    weekends, either = calendars.weekends(), never | DAILY
    ninth = datetime(2026, 11, 18, 9, tzinfo=UTC)
    for trigger in (
        either,
        either - weekends,
        either & cron("* * * * *", tz="Asia/Tokyo"),
        (either - weekends).between(start=NOW).jitter("1s").at_most(3),
        (never | (either - weekends)) & (DAILY | never),
    ):
        assert trigger.next_after(NOW) == ninth


def test_a_part_whose_search_runs_out_before_another_comes_leaves_open_which_is_first() -> None:
    now = from_datetime(NOW)
    answer = (NEVER_IN_TWO_ZONES | DAILY).first(now)
    assert isinstance(answer, NoOccurrence)
    assert now + HOUR < answer.through < from_datetime(datetime(2026, 11, 18, 9, tzinfo=UTC))
    assert not answer.proved


@pytest.mark.parametrize(
    "trigger",
    [
        At((BEGIN,)) - calendars.weekends(),
        (DAILY - calendars.weekends()).between(end=to_datetime(BEGIN)),
        NEVER_IN_TWO_ZONES.between(end=to_datetime(BEGIN + HOUR)),
        At((BEGIN,)) | At((BEGIN - 1,)),
    ],
)
def test_what_is_over_or_cannot_be_is_proved(trigger: Trigger) -> None:
    assert trigger.first(BEGIN) == NEVER
    assert NEVER.proved


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The questions to cron rules."""
    questions: list[int] = []
    original = Cron.after

    def noted(self: Cron, instant: int) -> int | None:
        questions.append(instant)
        return original(self, instant)

    monkeypatch.setattr(Cron, "after", noted)
    return questions


def test_what_a_simple_part_says_bounds_the_search_for_the_others(asked: list[int]) -> None:
    either = (cron("0 0 * * *") & cron("30 0 * * *", tz="Asia/Tokyo")) | DAILY
    assert either.next_after(NOW) == datetime(2026, 11, 18, 9, tzinfo=UTC)
    assert len(asked) < 10


def test_each_part_gets_enough_steps_to_get_on() -> None:
    nine = from_datetime(NOW.replace(hour=9))
    hours = (rrule(f"FREQ=DAILY;BYHOUR=9,{hour}", start=NOW - timedelta(days=9)) for hour in (1, 2, 3))
    together = Intersection(tuple(hours))
    others = (DAILY - calendars.blackout("08:00", "10:00"), At((nine - DAY,)))
    assert Union((together, *others)).first(nine - 1, steps=180) == nine


def test_no_answer_is_found_twice(asked: list[int]) -> None:
    never = cron("0 0 * * *") & cron("30 0 * * *", tz="Asia/Tokyo")
    now, looks = from_datetime(NOW), 0
    while isinstance(answer := never.first(now), NoOccurrence) and answer.through < now + SEARCH_HORIZON:
        looks += 1
    assert looks > 1
    assert len(asked) <= (looks + 1) * MOST_SEARCH_STEPS
    asked.clear()
    assert never.first(now) == answer
    assert asked == []
    never.first(now + 30 * DAY)
    never.first(now)
    assert len(asked) < 100
    rare = cron("*/10 * * * *") & (cron("5-55/10 * * * *", tz="Asia/Tokyo") | cron("0 0 20 * *"))
    found = rare.first(now)
    assert isinstance(found, int)
    asked.clear()
    assert [rare.first(now), rare.first(found - 1), rare.comes_at(found)] == [found, found, True]
    assert asked == []
    assert rare.first(0) == 19 * DAY


def test_what_counts_from_the_question_remembers_nothing() -> None:
    trigger = every("1d") & cron("0 9 * * *", tz="Asia/Tokyo") & cron("30 9 * * *", tz="Asia/Kabul")
    trigger.first(BEGIN)
    assert trigger.memory is None
    assert trigger.anchored(BEGIN).memory is not None


def test_memories_are_neither_compared_nor_shown_nor_shared() -> None:
    one, other = (trigger_from_spec(NEVER_IN_TWO_ZONES.to_spec()) for _ in range(2))
    one.first(BEGIN)
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)
    assert deepcopy(one) == one
    assert one.first(BEGIN) != other.first(BEGIN)


def test_threads_that_share_a_trigger_get_the_answers_of_one() -> None:
    trigger = cron("0 0 * * *") & (cron("30 0 * * *", tz="Asia/Tokyo") | cron("0 0 1 1 *"))
    instants = [BEGIN + number * 40 * DAY for number in range(40)]
    expected = [trigger_from_spec(trigger.to_spec()).first(instant) for instant in instants]
    answers: list[list[int | NoOccurrence]] = []
    threads = [
        Thread(target=lambda: answers.append([trigger.first(instant) for instant in instants]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 4
