"""Duetime as its growth is measured: tasks that note that they ran, and workers for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import children
from benchmarks.growth.notes import Pen
from benchmarks.subject import TICK
from duetime import Scheduler, current_job
from duetime.model.time import from_datetime
from duetime.scheduler.task import AsyncTask

WAIT = 0.005
"""Seconds for which a job of the narrow queue waits."""
NARROW = "narrow"
WIDTH = 10
"""How many jobs of the narrow queue a worker runs at once: there, workers and not processors are what is short."""
_WIDE = 100
_BATCH = 1_000

Call = Callable[[int, int], Any]


class Crew:
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
            scheduler = Crew(url, Path(notes)).scheduler
            await stack.enter_async_context(scheduler)
            queues = {"default": None, NARROW: WIDTH}
            await stack.enter_async_context(scheduler.worker(concurrency=_WIDE, queues=queues))
        await asyncio.to_thread(children.ready_then_wait)
