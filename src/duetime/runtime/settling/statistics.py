"""Sums up what became of runs, and has it stored from time to time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from duetime.errors import StoreError, StoreLost
from duetime.model.ids import new_job_id
from duetime.model.job import Claim, NewJob
from duetime.model.outcome import Settlement
from duetime.model.states import State
from duetime.model.statistics import (
    PART,
    CellKey,
    Cells,
    StatisticsRow,
    Sums,
    count_runs,
    count_skipped,
    merged,
    read_sums,
    write_cells,
    write_sums,
)
from duetime.model.time import SECOND
from duetime.runtime.service import Service, WorkerContext
from duetime.stores.base import Store

log = logging.getLogger("duetime.worker")

_CELLS_IN_PART: Final = 100
_PARTS_AT_ONCE: Final = 10
"""How many parts are merged in one step: others wait for the database that long."""


class RunStatistics(Service):
    """Counts what was stored of runs, and writes it with about every heartbeat and at the end; asleep while nothing ends."""

    name = "statistics"

    def __init__(self, context: WorkerContext, store: Store) -> None:
        """`store`: where they are kept, for all parts of a store that is made of several."""
        super().__init__(store, context.health)
        self._context = context
        self._pause = context.options.lease / 3 / SECOND
        self._cells: Cells = {}
        self._unwritten: list[StatisticsRow] = []
        self._asleep = True
        self.on_written: Callable[[], object] = lambda: None
        """Called when there is something new to merge."""

    def count(self, runs: Iterable[tuple[Claim, Settlement]]) -> None:
        """Count what the store has accepted."""
        count_runs(self._cells, runs)
        self._wake()

    def skipped(self, jobs: Iterable[NewJob]) -> None:
        """Count the occurrences among new jobs that were recorded without a run."""
        for job in jobs:
            if job.state is State.SKIPPED:
                count_skipped(self._cells, job, now=self._context.time.now())
        self._wake()

    async def round(self) -> float | None:
        """Write what was counted since the last round."""
        self._asleep = not self._cells and not self._unwritten
        if self._asleep:
            return None
        await self._write()
        return self._pause

    async def stop(self) -> None:
        """End, and write what is left."""
        await super().stop()
        try:
            await self._write()
        except StoreLost:
            # The worker has said so: that is why it stops.
            return
        except StoreError as error:
            log.warning("the last statistics could not be stored before the worker stopped: %s", error)

    def _wake(self) -> None:
        if self._asleep and self._cells:
            self._asleep = False
            self.wakeup.set_after(self._pause)

    async def _write(self) -> None:
        # What could not be written goes again under the same ids, so that it counts once.
        if not self._unwritten:
            cells = list(self._cells.items())
            # In place: what settles meanwhile is counted in the same object.
            self._cells.clear()
            starts = range(0, len(cells), _CELLS_IN_PART)
            self._unwritten = [self._part(cells[first : first + _CELLS_IN_PART]) for first in starts]
        if self._unwritten:
            await self._store.add_statistics(self._unwritten)
            self._unwritten = []
            self.on_written()

    def _part(self, cells: Sequence[tuple[CellKey, Sums]]) -> StatisticsRow:
        now, worker = self._context.time.now(), self._context.identity.info.id
        return StatisticsRow(f"part|{new_job_id()}", "part", PART, worker, now, write_cells(cells))


async def fold(store: Store) -> bool:
    """Merge the oldest parts into the rows of their minutes, hours and days; False when nothing is left, or another does it."""
    found = await store.statistics_parts(limit=_PARTS_AT_ONCE)
    if not found.bodies:
        return False
    sums = merged(found.bodies.values())
    stored = await store.statistics_rows([key.id for key in sums])
    for key, added in sums.items():
        if key.id in stored:
            added.plus(read_sums(stored[key.id]))
    rows = [StatisticsRow(key.id, *key, write_sums(added)) for key, added in sums.items()]
    done = await store.fold_statistics(found.folds, list(found.bodies), rows)
    return done and len(found.bodies) == _PARTS_AT_ONCE
