"""Takes every curve of every engine, one after the other, and keeps what came of it in one value."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.growth import crowds, schedules, stored, workers
from benchmarks.growth.engines import ENGINES, Engine
from benchmarks.growth.sizes import Sizes
from benchmarks.ledger import WrongRun
from benchmarks.places import fill
from benchmarks.report import machine

CURVES = ("workers", "crowds", "schedules", "stored")
"""In this order: the last one leaves the store full."""

Results = dict[str, Any]


def run(engines: Iterable[str], curves: Sequence[str], sizes: Sizes) -> Results:
    """Measure, and return all figures with what they depend on."""
    found: Results = {"machine": machine(), "sizes": asdict(sizes), "engines": {}}
    for name in engines:
        with ENGINES[name]() as engine:
            fill(url=engine.url, future=0)
            engine.tidy()
            found["engines"][name] = {"facts": engine.facts, **_curves(engine, curves, sizes)}
    return found


def _curves(engine: Engine, curves: Sequence[str], sizes: Sizes) -> Results:
    found: Results = {}
    for curve in CURVES:
        if curve not in curves or (curve == "crowds" and engine.load() is None):
            continue
        _say(f"{engine.name}: {curve}")
        points: list[Any] = []
        found[curve] = points
        try:
            for point in _measured(curve, engine, sizes):
                _say(f"  {point}")
                points.append(point)
        except WrongRun as error:
            # What was measured before is worth keeping, and so are the curves to come.
            _say(f"  broken off: {error}")
            found.setdefault("broken", {})[curve] = str(error)
            engine.tidy()
    return found


def _measured(curve: str, engine: Engine, sizes: Sizes) -> Iterable[Any]:
    match curve:
        case "workers":
            return workers.measure(engine, sizes)
        case "crowds":
            return ({**figures, "by_name": named} for figures, named in crowds.measure(engine, sizes))
        case "schedules":
            return schedules.measure(engine, sizes)
        case _:
            return stored.measure(engine, sizes)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
