"""The verbs of a SQL store about queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from duetime.model.instants import Instant
from duetime.model.limit import Gate
from duetime.stores.base import CancelAnswer, Hint, Outlook
from duetime.stores.sql import scripts
from duetime.stores.sql.operations import Operations

if TYPE_CHECKING:
    from duetime.model.registries import Census


class Queueing(Operations):
    """A part of `SqlStore`, which has the driver and the statements."""

    async def pause_queue(self, queue: str, *, reason: str | None) -> None:
        """Hand out nothing more from a queue."""
        await self._driver.write(
            lambda: scripts.queues.pause_queue(self._sql, queue, reason=reason), atomic=False
        )

    async def resume_queue(self, queue: str) -> None:
        """Hand out jobs of a queue again."""
        await self._driver.write(lambda: scripts.queues.resume_queue(self._sql, queue), atomic=False)
        self._driver.hint(Hint("jobs"))

    async def outlook(self, queue: str, *, gate: str | None = None) -> Outlook:
        """Return what, beside workers, decides whether jobs in a queue, under a gate, are handed out."""
        return await self._driver.read(lambda: scripts.queues.outlook(self._sql, queue, gate=gate))

    async def paused_queues(self) -> Mapping[str, str | None]:
        """Return the paused queues with their reasons."""
        return await self._driver.read(lambda: scripts.reads.paused_queues(self._sql))

    async def set_queue_limit(self, queue: str, limit: Gate | None) -> None:
        """Limit a queue, or no longer."""
        await self._driver.write(
            lambda: scripts.queues.set_queue_limit(self._sql, queue, limit), atomic=False
        )
        self._driver.hint(Hint("jobs"))

    async def queue_limits(self) -> Mapping[str, Gate]:
        """Return the limited queues with their limits."""
        return await self._driver.read(lambda: scripts.reads.queue_limits(self._sql))

    async def census(self, *, most: int) -> Census:
        """Count what is in each queue, up to a bound for each thing that is counted."""
        return await self._driver.read(lambda: scripts.queues.census(self._sql, most=most), rows=None)

    async def purge(self, queue: str, *, before: Instant, reason: str, limit: int) -> int:
        """Cancel up to `limit` pending jobs of a queue that were stored before, and return how many."""
        cancelled = await self._driver.write(
            lambda: scripts.queues.purge(self._sql, queue, before=before, reason=reason, limit=limit),
            rows=None,
        )
        if cancelled is None:
            return 0
        self._hint_cancelled(cancelled)
        return list(cancelled.answers.values()).count(CancelAnswer.CANCELLED)
