"""A fleet of worker processes on one store, and what it is asked to do at every size."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import children
from benchmarks.growth.engines import Engine, Load
from benchmarks.ledger import Entry, WrongRun, checked, now, spread, steady_rate
from benchmarks.processes import processor_seconds
from benchmarks.subject import TICK
from duetime import Scheduler, current_job
from duetime.model.time import from_datetime
from duetime.scheduler.task import AsyncTask

_NOTE = struct.Struct("<qqq")
_LOOK = 0.01


class Pen:
    """Writes notes; each is one short append, which no other can come between."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, number: int, due_at: int) -> None:
        """Note that a job has started."""
        os.write(self._file, _NOTE.pack(number, due_at, now()))


class Notes:
    """Reads what was noted, and forgets it between two measures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()

    def clear(self) -> None:
        """Begin anew."""
        os.truncate(self.path, 0)

    def wait(self, expected: int, *, within: float) -> list[Entry]:
        """Return the notes when there are as many as expected; too few in time is a failure."""
        deadline = time.monotonic() + within
        while (found := self.path.stat().st_size // _NOTE.size) < expected:
            if time.monotonic() > deadline:
                raise WrongRun(f"{found} of {expected} jobs ran within {within:g} s")
            time.sleep(_LOOK)
        return [Entry(*note) for note in _NOTE.iter_unpack(self.path.read_bytes())]


WAIT = 0.005
"""Seconds for which a job of the narrow queue waits."""
NARROW = "narrow"
WIDTH = 10
"""How many jobs of the narrow queue a worker runs at once: there, workers and not processors are what is short."""
_WIDE = 100
_BATCH = 1_000

Call = Callable[[int, int], Any]


class FleetTasks:
    """A scheduler with the tasks of the growth benchmark."""

    def __init__(self, url: str, notes: Path) -> None:
        # Which database this is stands in the report.
        logging.getLogger("duetime.stores").setLevel(logging.ERROR)
        self.scheduler = Scheduler(url)
        pen = Pen(notes)

        @self.scheduler.task(name="benchmarks.note")
        async def note(number: int, due_at: int) -> None:
            pen.note(number, due_at)

        @self.scheduler.task(name="benchmarks.wait", queue=NARROW)
        async def wait(number: int, due_at: int) -> None:
            pen.note(number, due_at)
            await asyncio.sleep(WAIT)

        @self.scheduler.task(name=TICK)
        async def tick(number: int) -> None:
            pen.note(number, from_datetime(current_job().due_at))

        self.note: AsyncTask[[int, int], None] = note
        self.wait: AsyncTask[[int, int], None] = wait
        self.tick: AsyncTask[[int], None] = tick

    def later(self, number: int, due_at: int) -> Any:
        """Make the request of a one-off job."""
        return self.note.options(at=datetime.fromtimestamp(due_at / 1e6, UTC)).call(number, due_at)

    async def put(self, count: int, call: Call, due_at: Callable[[int], int]) -> None:
        """Enqueue jobs 0 to `count` in large batches."""
        for first in range(0, count, _BATCH):
            numbers = range(first, min(count, first + _BATCH))
            await self.scheduler.enqueue_many([call(n, due_at(n)) for n in numbers])


async def work(*, url: str, notes: str, workers: int) -> None:
    """In a process of its own: work until told to finish; each worker has a scheduler and connections of its own."""
    async with AsyncExitStack() as stack:
        for _ in range(workers):
            scheduler = FleetTasks(url, Path(notes)).scheduler
            await stack.enter_async_context(scheduler)
            queues = {"default": None, NARROW: WIDTH}
            await stack.enter_async_context(scheduler.worker(concurrency=_WIDE, queues=queues))
        await asyncio.to_thread(children.ready_then_wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Worker processes that are up."""

    url: str
    pids: tuple[int, ...]
    notes: Notes

    def client(self) -> FleetTasks:
        """Return a client of the store."""
        return FleetTasks(self.url, self.notes.path)

    def processor(self) -> float:
        """Return the processor seconds that all of them have used."""
        return sum(map(processor_seconds, self.pids))


@contextmanager
def fleet(url: str, *, processes: int, each: int = 1) -> Iterator[Fleet]:
    """Start worker processes, `each` with so many workers, and wait until all are up."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="duetime-fleet-"))
        notes = Notes(Path(folder) / "notes")
        started = [
            stack.enter_context(children.started(work, url=url, notes=str(notes.path), workers=each))
            for _ in range(processes)
        ]
        for child in started:
            child.wait_ready()
        yield Fleet(url=url, pids=tuple(child.pid for child in started), notes=notes)
        for child in started:
            child.finish()


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
    tasks = fleet.client()
    call: Call = tasks.wait.call if waiting else tasks.note.call
    queue = NARROW if waiting else "default"
    async with tasks.scheduler as scheduler:
        await scheduler.queues.pause(queue)
        fleet.notes.clear()
        await tasks.put(jobs, call, lambda _: now())
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
    tasks = fleet.client()
    fleet.notes.clear()
    async with tasks.scheduler:
        first = now() + int(_LEAD * _SECOND)
        await tasks.put(jobs, tasks.later, lambda n: first + n * _SECOND // rate)
        assert now() < first, "scheduling took longer than the lead"
        return await _late(fleet, jobs)


def start(fleet: Fleet, *, pings: int) -> Figures:
    """Return how long an idle fleet takes to start a job, in milliseconds."""
    return asyncio.run(_start(fleet, pings))


async def _start(fleet: Fleet, pings: int) -> Figures:
    tasks = fleet.client()
    fleet.notes.clear()
    async with tasks.scheduler:
        for n in range(pings):
            await asyncio.sleep(random.uniform(0.02, 0.05))
            await tasks.note.enqueue(n, now())
        return await _late(fleet, pings)


async def _late(fleet: Fleet, jobs: int) -> Figures:
    found = await asyncio.to_thread(fleet.notes.wait, jobs, within=_PATIENCE)
    return spread([entry.late / 1000 for entry in checked(found, expected=jobs)])


def enqueue(engine: Engine, tasks: FleetTasks, *, singles: int, bulk: int) -> Figures:
    """Return enqueues per second with no one at work, and how many pages of the database each touches."""
    return asyncio.run(_enqueue(engine, tasks, singles, bulk))


async def _enqueue(engine: Engine, tasks: FleetTasks, singles: int, bulk: int) -> Figures:
    async with tasks.scheduler:
        # With the arguments of jobs for later: smaller rows would find a place in the last gap of every page of those.
        await tasks.note.enqueue(0, now())
        before, began = engine.load(), time.perf_counter()
        for n in range(singles):
            await tasks.note.enqueue(n, now())
        figures = {"enqueue": singles / (time.perf_counter() - began)}
        if before is not None:
            load = _since(engine, before)
            figures["pages_enqueue"] = sum(each.pages for each in load.calls.values()) / singles
        began = time.perf_counter()
        await tasks.put(bulk, tasks.note.call, lambda _: now())
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
