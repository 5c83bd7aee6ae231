from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime.model.job import Token
from duetime.model.outcome import Settlement
from duetime.model.states import State
from duetime.model.statistics import (
    ERROR,
    TOTAL,
    CellKey,
    Grain,
    Histogram,
    Kind,
    StoredStatistics,
    Sums,
    merged,
    middle,
    percentile,
    read_cells,
    read_sums,
    size,
    sums_by_start,
    tally,
    word_of,
    write_cells,
    write_sums,
)
from duetime.model.time import DAY, HOUR, MINUTE

durations = st.lists(st.integers(0, 10**14), max_size=50)
names = st.sampled_from(["a", "b", "b|1", "ü ☃"])
sums = st.builds(
    Sums,
    st.dictionaries(
        st.sampled_from(["succeeded", "failed", "later word"]), st.integers(1, 10**6), max_size=2
    ),
    *(st.dictionaries(st.integers(-1, 400), st.integers(1, 10**15), max_size=3) for _ in range(3)),
)
cells = st.dictionaries(
    st.builds(CellKey, st.integers(0, 3 * 1440).map(lambda n: n * MINUTE), names, names, st.none() | names),
    sums,
)


def counted(values: list[int]) -> Histogram:
    found: Histogram = {}
    for value in values:
        tally(found, value)
    return found


def total(many: list[Sums]) -> Sums:
    found = Sums()
    for one in many:
        found.plus(one)
    return found


@given(durations, st.floats(0.001, 1))
def test_a_percentile_is_near_the_true_one(values: list[int], share: float) -> None:
    found = percentile(counted(values), share)
    if not values:
        assert found is None
        return
    true = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    assert found is not None
    assert abs(found - true) <= true * ERROR


@given(st.integers(0, 10**15))
def test_each_duration_falls_into_the_bucket_that_stands_for_it(value: int) -> None:
    (bucket,) = counted([value]).keys() - {TOTAL}
    assert abs(middle(bucket) - value) <= value * ERROR
    assert counted([middle(bucket)]).keys() == {bucket, TOTAL}


@given(durations, durations)
def test_histograms_add_up_to_that_of_all(some: list[int], others: list[int]) -> None:
    both = total([Sums(run=counted(some)), Sums(run=counted(others))]).run
    assert both == counted([*some, *others])
    assert (size(both), both.get(TOTAL, 0)) == (len(some) + len(others), sum(some) + sum(others))


def test_a_clock_that_was_set_back_makes_no_negative_durations() -> None:
    assert counted([-5]) == {0: 1, TOTAL: 0}


@given(sums)
def test_sums_are_read_as_they_were_written(one: Sums) -> None:
    assert read_sums(write_sums(one)) == one


@given(cells)
def test_parts_are_read_as_they_were_written(some: dict[CellKey, Sums]) -> None:
    assert read_cells(write_cells(some.items())) == list(some.items())


@given(st.lists(cells, max_size=3), st.integers(0, 3), names, st.sampled_from(Grain))
def test_what_is_read_is_the_same_whatever_of_it_is_merged(
    parts: list[dict[CellKey, Sums]], done: int, name: str, grain: Grain
) -> None:
    bodies = [write_cells(part.items()) for part in parts]
    rows = [(key.id, write_sums(one)) for key, one in merged(bodies[:done]).items()]
    length = {"m": MINUTE, "h": HOUR, "d": DAY}[grain]
    for kind, place in ((Kind.ALL, None), (Kind.TASK, 1), (Kind.QUEUE, 2), (Kind.SCHEDULE, 3)):
        expected: dict[int, list[Sums]] = {}
        for part in parts:
            for key, one in part.items():
                if (place is None or key[place] == name) and (kind, grain) != (Kind.SCHEDULE, Grain.MINUTE):
                    expected.setdefault(key.minute - key.minute % length, []).append(one)
        called = "" if kind is Kind.ALL else name
        found = sums_by_start(StoredStatistics(rows, bodies[done:]), kind, grain, called)
        assert found == {start: total(many) for start, many in expected.items()}, kind


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{}",
        "[1]",
        "[[1]]",
        '[["x","a","b",null,{},{},{},{}]]',
        '[[0,1,"q",null,{},{},{},{}]]',
        "[" * 9_999,
    ],
)
def test_a_part_that_cannot_be_read_counts_as_nothing(body: str) -> None:
    assert read_cells(body) == []
    assert merged([body]) == {}


@pytest.mark.parametrize(
    "body", ["", "{}", "[1]", '[{"a":"x"},{},{},{}]', '[{},{"x":1},{},{}]', "[{}]", "null"]
)
def test_sums_that_cannot_be_read_count_as_nothing(body: str) -> None:
    assert read_sums(body) == Sums()


def test_what_is_stored_is_small() -> None:
    one = Sums({"succeeded": 10**6}, *(counted([2**n for n in range(37)]) for _ in range(3)))
    assert len(write_sums(one)) < 1_200
    assert isinstance(json.loads(write_sums(one)), list)


@pytest.mark.parametrize(
    ("state", "attempt", "word"),
    [
        (State.SUCCEEDED, None, "succeeded"),
        (State.FAILED, None, "failed"),
        (State.CANCELLED, None, "cancelled"),
        (State.SKIPPED, None, "skipped"),
        (State.PENDING, "error", "retried"),
        (State.PENDING, "timeout", "retried"),
        (State.PENDING, "snoozed", "snoozed"),
        (State.PENDING, "interrupted", "interrupted"),
        (State.PENDING, "lost", "lost"),
        (State.PENDING, None, None),
    ],
)
def test_each_end_has_a_word_and_a_claim_that_went_back_has_none(
    state: State, attempt: Any, word: str | None
) -> None:
    assert word_of(Settlement(Token("j", 1, "c"), state, None, attempt=attempt)) == word
