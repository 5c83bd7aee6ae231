"""What holds for triggers of every kind, however they are combined."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from duetime import calendars
from duetime.errors import InvalidTrigger
from duetime.model.time import LATEST, from_datetime
from duetime.model.triggers.at import At
from duetime.model.triggers.base import MOST_SEARCH_STEPS, SEARCH_HORIZON, NoOccurrence, SearchBudget, Trigger
from duetime.model.triggers.combined import DEEPEST_TRIGGER, MOST_TRIGGER_PARTS, Jitter, Union
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from duetime.model.triggers.preview import clock_change_note
from duetime.model.triggers.specs import trigger_from_spec
from tests.support.profiles import tries
from tests.support.triggers import DAY, INSTANTS, LEAVES, TRIGGERS, UNLIMITED, walk


@tries(0.6)
@given(trigger=TRIGGERS, instant=INSTANTS)
def test_occurrences_come_strictly_one_after_the_other(trigger: Trigger, instant: int) -> None:
    found = walk(trigger, instant, most=20)
    assert found == sorted(set(found))
    assert not found or found[0] > instant


@tries(1)
@given(trigger=TRIGGERS)
def test_every_nesting_is_read_back_from_its_spec(trigger: Trigger) -> None:
    restored = trigger_from_spec(json.loads(json.dumps(trigger.to_spec())))
    assert restored == trigger
    assert (restored.tz, restored.times, restored.describe()) == (
        trigger.tz,
        trigger.times,
        trigger.describe(),
    )


@tries(0.4)
@given(trigger=UNLIMITED, after=INSTANTS, length=st.integers(1, 10))
def test_the_last_occurrence_and_their_number_agree_with_walking(
    trigger: Trigger, after: int, length: int
) -> None:
    until = after + length * DAY
    walked = walk(trigger, after, until=until, most=1_000)
    if len(walked) == 1_000:
        until = walked[-1]
    assert trigger.last(after, until) == (walked[-1] if walked else None)
    assert trigger.count(after, until) in (None, len(walked))


@tries(0.6)
@given(trigger=UNLIMITED, name=st.text(), instant=INSTANTS)
def test_a_seed_and_an_anchor_are_given_once(trigger: Trigger, name: str, instant: int) -> None:
    ready = trigger.seeded(name).anchored(instant)
    assert ready.seeded("another").seeded("third") == ready.seeded("another")
    assert ready.anchored(instant + DAY) == ready
    assert trigger_from_spec(ready.to_spec()) == ready


@tries(1)
@given(trigger=UNLIMITED, instant=INSTANTS, steps=st.integers(0, 300))
def test_a_search_with_too_few_steps_says_so_and_nothing_else(
    trigger: Trigger, instant: int, steps: int
) -> None:
    fresh = trigger_from_spec(trigger.to_spec())
    search = SearchBudget(instant + SEARCH_HORIZON, steps)
    found, known = trigger.seek(instant, search), fresh.first(instant, steps=2 * MOST_SEARCH_STEPS)
    if not isinstance(found, NoOccurrence):
        assert found == known
        return
    assert found.through >= instant
    assert isinstance(known, NoOccurrence) or found.through < known
    assert found.through >= search.until or search.left <= 0


def test_a_search_in_vain_ends_after_so_many_steps_however_deep_the_trigger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0
    original = At.after

    def counted(self: At, instant: int) -> int | None:
        nonlocal asked
        asked += 1
        return original(self, instant)

    monkeypatch.setattr(At, "after", counted)
    odd, even = At(tuple(range(1, 9_999, 2))), At(tuple(range(0, 9_998, 2)))
    nothing = odd & even
    assert ((nothing | odd) & even).after(0) is None
    assert 0 < asked <= MOST_SEARCH_STEPS + 2 * 4


def test_a_part_that_is_searched_for_in_vain_does_not_hide_the_others() -> None:
    odd, even = At(tuple(range(1, 19_999, 2))), At(tuple(range(0, 19_998, 2)))
    assert (odd & even).after(0) is None
    nothing = odd & even
    rule = nothing | At((7,))
    assert [trigger.after(0) for trigger in (rule, rule.at_most(3), rule.jitter("1s"))] == [7, 7, 7]


def test_a_search_looks_a_hundred_years_ahead() -> None:
    daily = cron("0 9 * * *") - calendars.blackout("08:00", "10:00")
    found = daily.first(5, steps=10 * MOST_SEARCH_STEPS)
    assert isinstance(found, NoOccurrence)
    assert 5 + SEARCH_HORIZON <= found.through < 5 + SEARCH_HORIZON + 2 * DAY < LATEST
    far = At((6 + SEARCH_HORIZON,))
    assert ((far | At((9,))) - calendars.weekends()).after(5) == 9
    assert far.at_most(1).after(5) == 6 + SEARCH_HORIZON


def test_nesting_has_a_bound() -> None:
    trigger: Trigger = cron("0 9 * * *")
    for _ in range(DEEPEST_TRIGGER):
        trigger = trigger.jitter("1s")
    with pytest.raises(InvalidTrigger, match=r"nested 8 deep, not 9; split"):
        trigger.jitter("1s")


def test_the_number_of_parts_has_a_bound() -> None:
    parts = tuple(every(seconds=number) for number in range(1, MOST_TRIGGER_PARTS + 1))
    assert len(Union(parts).parts) == MOST_TRIGGER_PARTS
    with pytest.raises(InvalidTrigger, match=r"from 1 to 50 parts, not 51"):
        Union(parts) | every("1h")
    with pytest.raises(InvalidTrigger, match=r"from 1 to 50 parts, not 0"):
        Union(())


@pytest.mark.parametrize("other", [5, None, "0 9 * * *", [], {}])
@pytest.mark.parametrize("combine", [lambda a, b: a | b, lambda a, b: a & b, lambda a, b: Jitter(b, 1_000)])
def test_only_triggers_are_combined(combine: object, other: object) -> None:
    with pytest.raises(InvalidTrigger, match=r"such as cron\('0 9 \* \* \*'\)"):
        combine(cron("0 9 * * *"), other)  # type: ignore[operator]


@pytest.mark.parametrize("limited", [every("1h", times=3), every("1h").at_most(3)])
def test_a_limit_belongs_to_the_whole(limited: Trigger) -> None:
    for combine in (Trigger.__or__, Trigger.__and__):
        with pytest.raises(InvalidTrigger, match=r"as in \(one \| other\)\.at_most\(3\)"):
            combine(cron("0 9 * * *"), limited)
    assert (cron("0 9 * * *") | every("1h")).at_most(3).times == 3


@given(leaves=st.lists(LEAVES, min_size=2, max_size=4))
def test_it_does_not_matter_how_parts_are_grouped(leaves: list[Trigger]) -> None:
    left: Trigger = leaves[0]
    for leaf in leaves[1:]:
        left = left | leaf
    right: Trigger = leaves[-1]
    for leaf in reversed(leaves[:-1]):
        right = leaf | right
    assert left == right == Union(tuple(leaves))


def test_notes_about_clock_changes_are_those_of_the_parts() -> None:
    berlin = cron("30 2 * * *", tz="Europe/Berlin")
    made_up = from_datetime(datetime(2030, 3, 31, 1, tzinfo=UTC))
    assert clock_change_note(berlin, made_up) is not None
    for combined in (
        berlin | every("7d"),
        berlin.jitter("1m"),
        berlin - calendars.weekdays("MON"),
        berlin.at_most(3),
    ):
        assert clock_change_note(combined, made_up) == clock_change_note(berlin, made_up)
