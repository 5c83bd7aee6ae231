from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from duetime.model.schedule.occurrences import OccurrenceSpan, span_without
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger

TENS = At(tuple(range(0, 1_000, 10)))


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ([50], [(10, 40, 4)]),
        ([10], [(20, 50, 4)]),
        ([30], [(10, 20, 2), (40, 50, 2)]),
        ([20, 40], [(10, 10, 1), (30, 30, 1), (50, 50, 1)]),
        ([10, 20, 30, 40, 50], []),
    ],
)
def test_what_is_left_lies_around_the_occurrences_that_get_jobs(
    taken: list[int], left: list[tuple[int, int, int]]
) -> None:
    assert span_without(OccurrenceSpan(10, 50, 5), taken, TENS) == [OccurrenceSpan(*piece) for piece in left]


def test_the_ends_and_the_number_that_were_written_hold_whatever_the_trigger_says_now() -> None:
    assert span_without(OccurrenceSpan(13, 57, 45), [30], TENS) == [
        OccurrenceSpan(13, 20, 1),
        OccurrenceSpan(40, 57, 43),
    ]
    assert span_without(OccurrenceSpan(13, 57, 45), [13, 57], At((500,))) == []
    assert span_without(OccurrenceSpan(13, 57, 2), [30], At((500,))) == [
        OccurrenceSpan(13, 13, 1),
        OccurrenceSpan(57, 57, 1),
    ]


@given(
    st.lists(st.integers(0, 10_000), min_size=1, unique=True).map(sorted),
    st.data(),
)
def test_however_the_occurrences_get_their_jobs_each_is_accounted_for_once(
    moments: list[int], data: st.DataObject
) -> None:
    trigger: Trigger = At(tuple(moments))
    spans, taken = [OccurrenceSpan(moments[0], moments[-1], len(moments))], set[int]()
    for chunk in data.draw(st.lists(st.sets(st.sampled_from(moments), min_size=1), max_size=8)):
        wanted = sorted(chunk - taken)
        taken |= chunk
        for span in spans[:]:
            if inside := [at for at in wanted if span.first <= at <= span.last]:
                spans.remove(span)
                spans += span_without(span, inside, trigger)
        stands = [at for span in spans for at in moments if span.first <= at <= span.last]
        assert sorted([*stands, *taken]) == moments
        assert sum(span.count for span in spans) == len(stands)
        assert all({span.first, span.last} <= set(moments) for span in spans)
