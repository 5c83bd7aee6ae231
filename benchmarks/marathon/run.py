"""Stores the jobs, lets one worker process drain them, and looks at it and at the database all the while."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import children
from benchmarks.ledger import WrongRun
from benchmarks.marathon.grounds import GROUNDS, Ground
from benchmarks.marathon.judge import Quarter, Room, Sample, Verdict, judge, quarters
from benchmarks.marathon.tally import Tally
from benchmarks.processes import memory
from duetime import Scheduler
from duetime.model.states import State
from duetime.scheduler.task import AsyncTask

_LOOK = 1.0
_SHORTEST_LOOK = 0.2
_STALLED = 60.0
"""Seconds after which a drain that makes no progress is given up."""
_BATCH = 5_000
_ENCORE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Marathon:
    """What came of it on one engine."""

    engine: str
    facts: str
    jobs: int
    samples: tuple[Sample, ...]
    parts: tuple[Quarter, ...]
    room: Room
    written: float | None
    """Megabytes of log while the jobs were drained."""
    verdicts: tuple[Verdict, ...]


def run(engine: str, *, jobs: int) -> Marathon:
    """Store and drain, and judge; raises when a job was lost or ran twice."""
    # A short one is looked at more often, so that its quarters can be told apart.
    look = max(_SHORTEST_LOOK, min(_LOOK, _LOOK * jobs / 1_000_000))
    with GROUNDS[engine]() as ground, tempfile.TemporaryDirectory(prefix="duetime-marathon-") as folder:
        children.run(fill, url=ground.url, jobs=jobs)
        ground.vacuum()
        written = ground.written()
        samples = drained(ground, Path(folder) / "tally", jobs, look)
        if written is not None:
            written = (ground.written() or 0.0) - written
        room = room_of(ground, Path(folder) / "encore", jobs, look)
        parts = quarters(samples, jobs)
        return Marathon(
            engine=engine,
            facts=ground.facts,
            jobs=jobs,
            samples=tuple(samples),
            parts=tuple(parts),
            room=room,
            written=written,
            verdicts=tuple(judge(parts, room, ground.bounds)),
        )


def drained(ground: Ground, file: Path, jobs: int, look: float) -> list[Sample]:
    """Let a worker process drain jobs, and return what was seen meanwhile; each job must have run once."""
    tally = Tally(file, jobs)
    samples: list[Sample] = []
    with children.started(drain, url=ground.url, file=str(file), jobs=jobs) as worker:
        worker.wait_ready()
        began = moved = time.monotonic()
        while tally.done < jobs:
            time.sleep(look)
            extent, now = ground.extent(), time.monotonic()
            if not samples or samples[-1].done < tally.done:
                moved = now
            elif now - moved > _STALLED:
                raise WrongRun(f"nothing has run for {_STALLED:.0f} s after {tally.done:,} jobs")
            # What is still to be settled when the last job has run is no part of the drain.
            if tally.done < jobs:
                samples.append(Sample(now - began, tally.done, memory(worker.pid), *extent))
        succeeded = worker.finish()
    tally.check()
    tally.close()
    if succeeded < jobs:
        raise WrongRun(f"{jobs:,} jobs ran, the store has {succeeded:,} as succeeded")
    return samples


def room_of(ground: Ground, file: Path, jobs: int, look: float) -> Room:
    """Compare what the records take with a copy, and see whether a few more use the room that is free."""
    more = max(1, jobs // _ENCORE)
    end = ground.extent().table
    ground.vacuum()
    before = ground.extent().table
    children.run(fill, url=ground.url, jobs=more)
    drained(ground, file, more, look)
    ground.vacuum()
    grown = max(0.0, ground.extent().table - before)
    fresh = ground.fresh()
    share = more / (jobs + more)
    return Room(end=end, fresh=fresh * (1 - share), encore=grown, encore_fresh=fresh * share)


class _Runner:
    def __init__(self, url: str, tally: Tally | None) -> None:
        # Which database this is stands in the report.
        logging.getLogger("duetime.stores").setLevel(logging.ERROR)
        self.scheduler = Scheduler(url)

        @self.scheduler.task(name="benchmarks.mark")
        async def mark(number: int) -> None:
            assert tally is not None
            tally.mark(number)

        self.mark: AsyncTask[[int], None] = mark


async def fill(*, url: str, jobs: int) -> None:
    """In a process of its own: store jobs that are due."""
    runner = _Runner(url, None)
    async with runner.scheduler as scheduler:
        for first in range(0, jobs, _BATCH):
            numbers = range(first, min(jobs, first + _BATCH))
            await scheduler.enqueue_many([runner.mark.call(n) for n in numbers])


async def drain(*, url: str, file: str, jobs: int) -> int:
    """In a process of its own: work until told to finish, and return how many jobs the store has as succeeded."""
    runner = _Runner(url, Tally(Path(file), jobs))
    async with runner.scheduler as scheduler:
        async with scheduler.worker(concurrency=100):
            await asyncio.to_thread(children.ready_then_wait)
        counts = await scheduler.store.counts()
    return sum(n for (_, state), n in counts.items() if state is State.SUCCEEDED)
