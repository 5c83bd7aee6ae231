"""What a fleet is asked to do at every size: drain, be on time, start at once, be idle."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.figures import spread, steady_rate
from benchmarks.growth.crew import NARROW, Call, Crew
from benchmarks.growth.engines import Engine
from benchmarks.growth.fleet import Fleet
from benchmarks.growth.load import Load
from benchmarks.ledger import Entry, checked, now

Figures = dict[str, float]

_SECOND = 1_000_000
_PATIENCE = 120.0
_LEAD = 1.5
"""Seconds from scheduling one-off jobs to the first due time."""
_LAST_WRITES = 0.3
"""Seconds in which what ran last is settled."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What came of a drain."""

    entries: Sequence[Entry]
    load: Load | None
    """What it cost the server, from the first claim to the last settlement."""
    processor: float
    """What it cost the workers, in seconds."""

    @property
    def rate(self) -> float:
        """Jobs per second in the middle of it."""
        return steady_rate([entry.started_at / _SECOND for entry in self.entries])


def drain(engine: Engine, fleet: Fleet, *, jobs: int, waiting: bool = False) -> Drained:
    """Let the fleet run jobs that are stored and due: all of its workers begin at the same moment."""
    return asyncio.run(_drain(engine, fleet, jobs, waiting=waiting))


async def _drain(engine: Engine, fleet: Fleet, jobs: int, *, waiting: bool) -> Drained:
    crew = fleet.client()
    call: Call = crew.wait.call if waiting else crew.note.call
    queue = NARROW if waiting else "default"
    async with crew.scheduler as scheduler:
        await scheduler.queues.pause(queue)
        fleet.notes.clear()
        await crew.put(jobs, call, lambda _: now())
        before, used = engine.load(), fleet.processor()
        await scheduler.queues.resume(queue)
        found = await asyncio.to_thread(fleet.notes.wait, jobs, within=_PATIENCE)
        await asyncio.sleep(_LAST_WRITES)
        load = None if before is None else _since(engine, before)
        return Drained(checked(found, expected=jobs), load, fleet.processor() - used)


def on_time(fleet: Fleet, *, jobs: int, rate: int) -> Figures:
    """Return how late one-off jobs start, in milliseconds."""
    return asyncio.run(_on_time(fleet, jobs, rate))


async def _on_time(fleet: Fleet, jobs: int, rate: int) -> Figures:
    crew = fleet.client()
    fleet.notes.clear()
    async with crew.scheduler:
        first = now() + int(_LEAD * _SECOND)
        await crew.put(jobs, crew.later, lambda n: first + n * _SECOND // rate)
        assert now() < first, "scheduling took longer than the lead"
        return await _late(fleet, jobs)


def start(fleet: Fleet, *, pings: int) -> Figures:
    """Return how long an idle fleet takes to start a job, in milliseconds."""
    return asyncio.run(_start(fleet, pings))


async def _start(fleet: Fleet, pings: int) -> Figures:
    crew = fleet.client()
    fleet.notes.clear()
    async with crew.scheduler:
        for n in range(pings):
            await asyncio.sleep(random.uniform(0.02, 0.05))
            await crew.note.enqueue(n, now())
        return await _late(fleet, pings)


async def _late(fleet: Fleet, jobs: int) -> Figures:
    found = await asyncio.to_thread(fleet.notes.wait, jobs, within=_PATIENCE)
    return spread([entry.late / 1000 for entry in checked(found, expected=jobs)])


def enqueue(engine: Engine, crew: Crew, *, singles: int, bulk: int) -> Figures:
    """Return enqueues per second with nobody at work, and how many pages of the database each touches."""
    return asyncio.run(_enqueue(engine, crew, singles, bulk))


async def _enqueue(engine: Engine, crew: Crew, singles: int, bulk: int) -> Figures:
    async with crew.scheduler:
        # With the arguments of jobs for later: smaller rows would find a place in the last gap of every page of those.
        await crew.note.enqueue(0, now())
        before, began = engine.load(), time.perf_counter()
        for n in range(singles):
            await crew.note.enqueue(n, now())
        figures = {"enqueue": singles / (time.perf_counter() - began)}
        if before is not None:
            load = _since(engine, before)
            figures["pages_enqueue"] = sum(each.pages for each in load.calls.values()) / singles
        began = time.perf_counter()
        await crew.put(bulk, crew.note.call, lambda _: now())
        return {**figures, "bulk": bulk / (time.perf_counter() - began)}


def idle(engine: Engine, fleet: Fleet, *, seconds: float) -> tuple[Figures, Load | None]:
    """Watch a fleet that has nothing to do; processors in hundredths of a core."""
    before, used = engine.load(), fleet.processor()
    time.sleep(seconds)
    figures = {"idle_workers": (fleet.processor() - used) / seconds * 100}
    if before is None:
        return figures, None
    load = _since(engine, before)
    figures |= {
        "idle_statements": load.statements / load.seconds,
        "idle_server": load.processor / load.seconds * 100,
        "connections": float(engine.connections()),
    }
    return figures, load


def _since(engine: Engine, before: Load) -> Load:
    after = engine.load()
    assert after is not None
    return after.since(before)
