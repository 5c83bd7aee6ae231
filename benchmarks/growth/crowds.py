"""The curve over more workers than this machine has room for processes: what they ask, which load cannot change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from benchmarks.growth import feats
from benchmarks.growth.engines import Engine
from benchmarks.growth.feats import Figures
from benchmarks.growth.fleet import Fleet, fleet
from benchmarks.growth.load import Load
from benchmarks.growth.sizes import Sizes
from benchmarks.ledger import checked

_GAP = 0.5
"""Seconds between single jobs: longer than it takes even a large crowd to answer a hint."""
_PATIENCE = 60.0


def measure(engine: Engine, sizes: Sizes) -> Iterator[tuple[Figures, dict[str, float]]]:
    """Yield the figures of each crowd, and its statements per second by name."""
    for workers in sizes.crowds:
        each = min(workers, sizes.in_process)
        with fleet(engine.url, processes=workers // each, each=each) as started:
            time.sleep(sizes.settle_in)
            idle, load = feats.idle(engine, started, seconds=sizes.idle)
            if load is None:
                raise ValueError(f"what a crowd asks is counted by a server, which {engine.name} has not")
            answered = asyncio.run(_answered(engine, started, sizes.events))
        rate = load.statements / load.seconds
        named = {name: calls.count / load.seconds for name, calls in sorted(load.calls.items())}
        beside = (answered.statements - rate * answered.seconds) / sizes.events
        yield {"workers": workers, **idle, "statements_per_event": max(0.0, beside)}, named
        engine.tidy()


async def _answered(engine: Engine, crowd: Fleet, events: int) -> Load:
    """Give the crowd one job after the other, and return what the server was asked meanwhile."""
    crew = crowd.client()
    crowd.notes.clear()
    async with crew.scheduler:
        before = engine.load()
        for n in range(events):
            await crew.note.enqueue(n, 0)
            await asyncio.sleep(_GAP)
        found = await asyncio.to_thread(crowd.notes.wait, events, within=_PATIENCE)
        after = engine.load()
    checked(found, expected=events)
    assert before is not None
    assert after is not None
    return after.since(before)
