"""What is asked of each store, and what its answers are held to."""

from __future__ import annotations

import pytest

from benchmarks.measures import Measure
from benchmarks.places import PLACES
from benchmarks.runner import MEASURES, REPORTED, figures

every_measure = pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)


@every_measure
@pytest.mark.parametrize("store", sorted(PLACES.keys() - REPORTED))
def test_every_measure_holds_each_store_to_what_it_says(measure: Measure, store: str) -> None:
    assert figures(measure, store) == measure.figures(store)


@every_measure
@pytest.mark.parametrize("store", sorted(REPORTED))
def test_what_is_only_reported_is_held_to_nothing(measure: Measure, store: str) -> None:
    found = figures(measure, store)
    assert [figure.key for figure in found] == [figure.key for figure in measure.figures(store)]
    assert not any(figure.goal or figure.must or figure.flat for figure in found)
