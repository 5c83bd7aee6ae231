"""Asks every question of the empty and of the filled database in turn, beside the limits."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from benchmarks.locks import Locks
from benchmarks.measures import Burst, Drain, Enqueue, Figure, Idle, Lateness, Measure, Start
from benchmarks.places import PLACES, Place, Places
from benchmarks.schedules import Firing, Schedules
from benchmarks.sizes import Sizes

MEASURES: tuple[Measure, ...] = (
    Enqueue(),
    Drain(),
    Start(),
    Lateness(),
    Burst(),
    Firing(),
    Schedules(),
    Locks(),
    Idle(),
)
REPORTED = frozenset({"mariadb"})
"""Stores whose figures are shown, and held to nothing."""
FLAT = 1.5
"""How many times worse a figure may be with many jobs stored for later."""

Values = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One pair and the limits measured between."""

    limits: Values
    empty: Values
    filled: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A figure as it came out: medians over the pairs."""

    store: str
    figure: Figure
    value: float
    limit: float | None
    ratio: float
    """The value as a multiple of its limit, or the value itself where there is none."""
    filled: float
    worse: float
    """How many times worse the filled database is; below 1 it is better."""

    @property
    def judged(self) -> float:
        """What is held to the bounds."""
        return self.ratio if self.figure.held == "ratio" else self.value

    @property
    def holds(self) -> bool | None:
        """Whether what has to hold does."""
        kept = self.figure.reaches(self.judged, self.figure.must)
        flat = self.worse <= FLAT if self.figure.flat else None
        known = [answer for answer in (kept, flat) if answer is not None]
        return all(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All rows of one store, and what it was."""

    store: str
    facts: dict[str, str]
    rows: tuple[Row, ...]


def run(stores: Iterable[str], names: Sequence[str], sizes: Sizes) -> list[Result]:
    """Measure each store."""
    chosen = [measure for measure in MEASURES if measure.name in names]
    return [_run_store(store, chosen, sizes) for store in stores] if chosen else []


def _run_store(store: str, measures: Sequence[Measure], sizes: Sizes) -> Result:
    _say(f"{store}: storing {sizes.future:,} jobs for later")
    with PLACES[store](sizes.future) as places:
        rows: list[Row] = []
        for measure in measures:
            samples = [_once(measure, places, sizes)] if measure.once else _pairs(measure, places, sizes)
            rows += [_row(store, figure, samples) for figure in figures(measure, store)]
        return Result(store=store, facts=places.facts, rows=tuple(rows))


def figures(measure: Measure, store: str) -> tuple[Figure, ...]:
    """Return what a measure gives for a store, with what it is held to there."""
    if store not in REPORTED:
        return measure.figures(store)
    return tuple(replace(figure, goal=None, must=None, flat=False) for figure in measure.figures(store))


def _pairs(measure: Measure, places: Places, sizes: Sizes) -> list[Sample]:
    samples: list[Sample] = []
    pairs = sizes.pairs if measure.pairs is None else min(measure.pairs, sizes.pairs)
    for n in range(pairs):
        _say(f"  {measure.name}: pair {n + 1} of {pairs}")
        # Whoever goes first changes places, so that neither profits from a warm disk or a quiet minute.
        order = (places.empty, places.filled) if n % 2 == 0 else (places.filled, places.empty)
        before = measure.run(order[0], sizes)
        limits = measure.limits(places.limits, sizes)
        after = measure.run(order[1], sizes)
        empty, filled = (before, after) if n % 2 == 0 else (after, before)
        samples.append(Sample(limits=limits, empty=empty, filled=filled))
    return samples


def _once(measure: Measure, places: Places, sizes: Sizes) -> Sample:
    _say(f"  {measure.name}")

    def ask(place: Place) -> Values:
        return measure.run(place, sizes)

    with ThreadPoolExecutor(2) as threads:
        empty, filled = threads.map(ask, (places.empty, places.filled))
    return Sample(limits=measure.limits(places.limits, sizes), empty=empty, filled=filled)


def _row(store: str, figure: Figure, samples: Sequence[Sample]) -> Row:
    key = figure.key
    value = statistics.median(sample.empty[key] for sample in samples)
    limit = statistics.median(sample.limits[key] for sample in samples) if figure.limit else None
    return Row(
        store=store,
        figure=figure,
        value=value,
        limit=limit,
        ratio=value
        if limit is None
        else statistics.median(sample.empty[key] / sample.limits[key] for sample in samples),
        filled=statistics.median(sample.filled[key] for sample in samples),
        worse=statistics.median(_worse(figure, sample) for sample in samples),
    )


def _worse(figure: Figure, sample: Sample) -> float:
    empty, filled = sample.empty[figure.key], sample.filled[figure.key]
    if figure.better == "more":
        empty, filled = filled, empty
    return filled / empty if empty else 1.0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
