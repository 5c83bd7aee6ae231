from __future__ import annotations

import pytest

from duetime.model.spans import Span, without

SPAN = Span("id", "nightly", first=10, last=50, occurrences=5)


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ([50], (49, 4)),
        ([40, 50], (39, 3)),
        ([50, 40, 60, 70], (39, 3)),
        ([20, 50], (19, 3)),
        ([10, 20, 30, 40, 50], None),
        ([10, 50], None),
    ],
)
def test_a_record_ends_before_the_first_occurrence_that_gets_a_job(
    taken: list[int], left: tuple[int, int] | None
) -> None:
    rest = without(SPAN, taken)
    assert (rest and (rest.last, rest.occurrences)) == left
    assert rest is None or rest.first == SPAN.first


def test_a_record_of_one_stands_for_nothing_then() -> None:
    assert without(Span("id", "nightly", first=50, last=50, occurrences=1), [50]) is None
