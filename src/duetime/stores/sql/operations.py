"""The verbs of a SQL store that change single jobs from outside: cancel, put off, take back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from duetime.model.ids import new_token
from duetime.model.instants import Micros
from duetime.model.job import JobId
from duetime.model.worker import WorkerId
from duetime.stores.base import CancelAnswer, Hint, ReleaseAnswer, SnoozeAnswer
from duetime.stores.sql import scripts
from duetime.stores.sql.driver import Driver
from duetime.stores.sql.loader import Statements


class Operations:
    """A part of `SqlStore`, which has the driver and the statements."""

    _driver: Driver
    _sql: Statements

    async def cancel(self, ids: Sequence[JobId], *, reason: str) -> Mapping[JobId, CancelAnswer]:
        """Cancel pending jobs, flag claimed ones and hint their workers."""
        cancelled = await self._driver.write(
            lambda: scripts.control.cancel(self._sql, ids, reason=reason), rows=len(ids)
        )
        self._hint_cancelled(cancelled)
        return cancelled.answers

    async def snooze(self, ids: Sequence[JobId], *, delay: Micros) -> Mapping[JobId, SnoozeAnswer]:
        """Put pending jobs off."""
        return await self._driver.write(
            lambda: scripts.moves.snooze(self._sql, ids, delay=delay), rows=len(ids)
        )

    async def release(self, ids: Sequence[JobId], *, force: bool) -> Mapping[JobId, ReleaseAnswer]:
        """Take claimed jobs away from their workers and hint those."""
        claim_id = new_token()
        released = await self._driver.write(
            lambda: scripts.moves.release(self._sql, ids, claim_id=claim_id, force=force), rows=len(ids)
        )
        if released.workers:
            self._hint_workers(released.workers)
            self._driver.hint(Hint("jobs"))
        return released.answers

    def _hint_cancelled(self, cancelled: scripts.control.Cancelled) -> None:
        self._hint_workers(cancelled.workers)
        if cancelled.called_back:
            self._driver.hint(Hint("jobs"))

    def _hint_workers(self, names: Iterable[WorkerId]) -> None:
        for name in names:
            self._driver.hint(Hint("worker", name))
