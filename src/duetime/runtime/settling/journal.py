"""Notes what becomes of jobs while someone watches, for those who do."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final

from duetime.errors import StoreError
from duetime.model.job import Claim, JobId
from duetime.model.outcome import Settlement
from duetime.model.states import State
from duetime.model.stored.watched import MOST_NOTED, Journal
from duetime.model.time import SECOND, Instant
from duetime.runtime.service import Service, WorkerContext

_PAUSE: Final = 0.05
"""Seconds between writes."""
_BUSY_PAUSE: Final = 0.25
"""The same when there is much to note."""
_MUCH: Final = 10
_KEPT: Final = 2.0
"""For how many seconds a job stays in what is written, so that those who look seldom miss none."""

_LONG_AGO: Final = 0.0


class JournalWriter(Service):
    """Counts and names what becomes of the jobs of this worker and, while it is watched, writes it down."""

    name = "journal"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context.store, context.health)
        self._identity = context.identity
        self._time = context.time
        self._loop = asyncio.get_running_loop()
        self.until: Instant | None = None
        """Until when it is watched; `None` while it is not."""
        self._end: asyncio.TimerHandle | None = None
        self._total = 0
        self._written = -1
        """How many there were when it last wrote."""
        self._next_at = 0.0
        self._latest: deque[tuple[float, JobId]] = deque(maxlen=MOST_NOTED)
        """Kept while it is not watched, too: it may run jobs before it hears of those who watch."""
        self._tallies: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def attend(self, until: Instant | None) -> None:
        """Note what happens until then; from now on, if it was not watched before."""
        if until is None or (left := until - self._time.now()) <= 0:
            return
        if self.until is None:
            self._written = -1
            self.wakeup.set()
        else:
            self._cancel_end()
        self.until, self._end = until, self._loop.call_later(left / SECOND, self._forget)

    def note(self, job_id: JobId, queue: str, state: State) -> None:
        """Note a change that is stored."""
        self._total += 1
        if self.until is None:
            self._latest.append((_LONG_AGO, job_id))
        else:
            self._note([(job_id, queue, state)])

    def settled(self, runs: Sequence[tuple[Claim, Settlement]]) -> None:
        """Note what has become of jobs, once it is stored."""
        self._total += len(runs)
        if self.until is None:
            self._latest.extend([(_LONG_AGO, claim.job_id) for claim, _ in runs])
        else:
            self._note((claim.job_id, claim.queue, change.state) for claim, change in runs)

    def _note(self, changes: Iterable[tuple[JobId, str, State]]) -> None:
        now = self._loop.time()
        for job_id, queue, state in changes:
            self._latest.append((now, job_id))
            self._tallies[queue][state] += 1
        self.wakeup.set_after(self._next_at - now)

    @property
    def _owes(self) -> bool:
        """Whether there is something to write."""
        return self.until is not None and self._written != self._total

    def _cancel_end(self) -> None:
        if self._end is not None:
            self._end.cancel()

    def _forget(self) -> None:
        self.until = self._end = None
        self._tallies.clear()

    async def round(self) -> float | None:
        """Write what has come since the last round."""
        if self._owes:
            await self._write()
        return None

    async def stop(self) -> None:
        """End, and write what is left."""
        await super().stop()
        self._cancel_end()
        if self._owes:
            try:
                await self._write()
            except StoreError as error:
                self._health.failed(self.name, error)

    async def _write(self) -> None:
        now, new = self._loop.time(), self._total - self._written
        while self._written >= 0 and self._latest and self._latest[0][0] < now - _KEPT:
            self._latest.popleft()
        latest = [job_id for _, job_id in self._latest]
        total = self._total
        journal = Journal(total, self._tallies, latest, self.until or 0)
        await self._store.write_journal(self._identity.info.id, journal.text())
        self._written = total
        self._next_at = self._loop.time() + (_PAUSE if new < _MUCH else _BUSY_PAUSE)
        if self._total != total:
            self.wakeup.set_after(self._next_at - self._loop.time())
