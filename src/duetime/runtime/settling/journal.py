"""Notes what becomes of jobs while someone watches, for those who do."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import Final

from duetime.errors import StoreError
from duetime.model.job import JobId, Token
from duetime.model.outcome import Settlement
from duetime.model.states import State
from duetime.model.stored.watched import MOST_NOTED, Journal
from duetime.model.time import Instant
from duetime.runtime.service import Service, WorkerContext

_PAUSE: Final = 0.05
"""Seconds between writes."""
_BUSY_PAUSE: Final = 0.25
"""The same when there is much to note."""
_MUCH: Final = 10
_FIRST: Final = 5.0
"""For how many seconds a new worker notes what it does without being watched."""
_KEPT: Final = 2.0
"""For how many seconds a job stays in what is written, so that those who look seldom miss none."""


class JournalWriter(Service):
    """Counts what becomes of the jobs of this worker and, while it is watched, writes it down."""

    name = "journal"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context.store, context.health)
        self._identity = context.identity
        self._time = context.time
        self._loop = asyncio.get_running_loop()
        self._until: Instant | None = None
        """Until when it is watched; `None` while it is not."""
        self._notes_until: float | None = self._loop.time() + _FIRST
        """A new worker notes in any case for a while: it may run jobs before it hears that it is watched."""
        self._total = 0
        self._written = -1
        """How many there were when it last wrote."""
        self._next_at = 0.0
        self._latest: deque[tuple[float, JobId]] = deque(maxlen=MOST_NOTED)
        self._tallies: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._queues: dict[Token, str] = {}

    def attend(self, until: Instant | None) -> None:
        """Note what happens until then; from now on, if it was not watched before."""
        if until is None or until <= self._time.now():
            return
        if self._until is None:
            self._written = -1
            self.wakeup.set()
        self._until, self._notes_until = until, None

    def expect(self, token: Token, queue: str) -> None:
        """Remember to which queue a job belongs whose settlement is about to be written."""
        if self._notes():
            self._queues[token] = queue

    def note(self, job_id: JobId, queue: str, state: State) -> None:
        """Note a change that is stored."""
        self._total += 1
        if self._notes():
            now = self._loop.time()
            self._latest.append((now, job_id))
            self._tallies[queue][state.value] += 1
            if self._until is not None:
                self.wakeup.set_after(self._next_at - now)

    def settled(self, batch: Sequence[Settlement], accepted: frozenset[Token]) -> None:
        """Note the settlements that were accepted."""
        if not self._notes():
            self._total += len(accepted)
            return
        for change in batch:
            queue = self._queues.pop(change.token, "")
            if change.token in accepted:
                self.note(change.token.job_id, queue, change.state)

    def _notes(self) -> bool:
        """Whether it notes at present."""
        if self._until is not None:
            over = self._until < self._time.now()
        else:
            over = self._notes_until is not None and self._notes_until < self._loop.time()
        if over:
            self._forget()
        return self._until is not None or self._notes_until is not None

    def _owes(self) -> bool:
        """Whether there is something to write."""
        return self._notes() and self._until is not None and self._written != self._total

    def _forget(self) -> None:
        self._until = self._notes_until = None
        self._latest.clear()
        self._tallies.clear()
        self._queues.clear()

    async def round(self) -> float | None:
        """Write what has come since the last round."""
        if self._owes():
            await self._write()
        return None

    async def stop(self) -> None:
        """End, and write what is left."""
        await super().stop()
        if self._owes():
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
        journal = Journal(total, self._tallies, latest, self._until or 0)
        await self._store.write_journal(self._identity.info.id, journal.text())
        self._written = total
        self._next_at = self._loop.time() + (_PAUSE if new < _MUCH else _BUSY_PAUSE)
        if self._total != total:
            self.wakeup.set_after(self._next_at - self._loop.time())
