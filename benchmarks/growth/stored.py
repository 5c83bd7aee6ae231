"""The curve over jobs that are stored for later: no figure should notice them."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.growth import feats
from benchmarks.growth.crew import Crew
from benchmarks.growth.engines import Engine
from benchmarks.growth.feats import Figures
from benchmarks.growth.fleet import fleet
from benchmarks.growth.sizes import Sizes
from benchmarks.ledger import now
from benchmarks.places import fill

_A_DAY = 86_400 * 1_000_000
_CLAIM = ("claim", "take")
_SETTLE = ("succeed", "settle")
_RATES = ("drain", "enqueue", "bulk")
_TIMES = ("start_p50",)
_NOWHERE = Path("/dev/null")


def measure(engine: Engine, sizes: Sizes) -> Iterator[Figures]:
    """Fill one database in steps, and yield the figures of each, also as multiples of an empty one's."""
    stored = 0
    empty = engine.beside()
    fill(url=empty.url, future=0)
    empty.tidy()
    for wanted in sizes.stored:
        asyncio.run(_fill(engine.url, stored, wanted))
        stored = wanted
        engine.tidy()
        # In turns, because the machine is not the same from one minute to the next.
        pairs = [(_one(empty, sizes), _one(engine, sizes)) for _ in range(sizes.repeats)]
        yield {"stored": stored, **_medians([full for _, full in pairs]), **multiples(pairs)}


async def _fill(url: str, first: int, last: int) -> None:
    crew = Crew(url, _NOWHERE)
    due = now() + _A_DAY
    async with crew.scheduler:
        await crew.put(last - first, crew.later, lambda n: due + (first + n) * 1_000_000)


def _one(engine: Engine, sizes: Sizes) -> Figures:
    figures = feats.enqueue(engine, Crew(engine.url, _NOWHERE), singles=sizes.singles, bulk=sizes.bulk)
    engine.tidy()
    with fleet(engine.url, processes=1) as started:
        begun = feats.start(started, pings=sizes.pings)
        drained = feats.drain(engine, started, jobs=sizes.drain)
    engine.tidy()
    return {**figures, "start_p50": begun["p50"], "drain": drained.rate, **_pages(drained)}


def _pages(drained: feats.Drained) -> Figures:
    """Return how many pages of the database a job touches when it is claimed, settled, and looked out for."""
    if drained.load is None:
        return {}
    calls, jobs = drained.load.calls, len(drained.entries)

    def per_job(names: Sequence[str]) -> float:
        return sum(calls[name].pages for name in names if name in calls) / jobs

    looks = drained.load.pages("next_due")
    return {"pages_claim": per_job(_CLAIM), "pages_settle": per_job(_SETTLE), "pages_look": looks}


def multiples(pairs: Sequence[tuple[Figures, Figures]]) -> Figures:
    """Return how many times as long everything takes, by the median of all pairs of an empty and a filled store."""
    longer = {key: [full[key] / empty[key] for empty, full in pairs] for key in _TIMES}
    longer |= {key: [empty[key] / full[key] for empty, full in pairs] for key in _RATES}
    return {f"{key}_times": statistics.median(found) for key, found in longer.items()}


def _medians(rounds: Sequence[Figures]) -> Figures:
    return {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
