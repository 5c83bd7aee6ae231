"""Duetime as it is measured: a task that only notes that it ran."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from benchmarks.ledger import now
from duetime import Scheduler, current_job
from duetime.model.time import from_datetime
from duetime.scheduler.task import AsyncTask

TICK = "benchmarks.tick"
"""The task that schedules run: when it was due, it learns from its job."""


class Subject:
    """A scheduler with no-op tasks, which note their number, their due time and their start."""

    def __init__(self, url: str) -> None:
        # Which database this is stands in the report.
        logging.getLogger("duetime.stores").setLevel(logging.ERROR)
        self.ran: list[tuple[int, int, int]] = []
        self.scheduler = Scheduler(url)
        self._awaited = -1
        self._reached = asyncio.Event()

        @self.scheduler.task(name="benchmarks.note")
        async def note(number: int, due_at: int) -> None:
            self._add(number, due_at, now())

        @self.scheduler.task(name=TICK)
        async def tick(number: int) -> None:
            started = now()
            self._add(number, from_datetime(current_job().due_at), started)

        self.note: AsyncTask[[int, int], None] = note
        self.tick: AsyncTask[[int], None] = tick

    async def enqueue_many(
        self, count: int, *, batch: int, due_at: Callable[[int], int] | None = None
    ) -> None:
        """Enqueue jobs 0 to `count` in batches, due now or when `due_at` says."""
        for start in range(0, count, batch):
            numbers = range(start, min(count, start + batch))
            await self.scheduler.enqueue_many([self.call(n, due_at) for n in numbers])

    def call(self, number: int, due_at: Callable[[int], int] | None = None) -> Any:
        """Make one request."""
        if due_at is None:
            return self.note.call(number, now())
        due = due_at(number)
        return self.note.options(at=datetime.fromtimestamp(due / 1e6, UTC)).call(number, due)

    def _add(self, number: int, due_at: int, started: int) -> None:
        self.ran.append((number, due_at, started))
        if len(self.ran) == self._awaited:
            self._reached.set()

    async def until_ran(self, count: int, *, within: float) -> None:
        """Wait until so many jobs have run."""
        if len(self.ran) < count:
            self._awaited = count
            async with asyncio.timeout(within):
                await self._reached.wait()
