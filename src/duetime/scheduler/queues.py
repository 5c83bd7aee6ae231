"""Queues as a client sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from duetime.model.names import check_name
from duetime.model.states import State
from duetime.stores.base import Store


class Queues:
    """Pauses, resumes and counts queues."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    async def pause(self, queue: str, *, reason: str | None = None) -> None:
        """Hand out nothing more from a queue; what is claimed already, or due within half a second, still runs."""
        await self._store().pause_queue(check_name(queue, what="queue"), reason=reason)

    async def resume(self, queue: str) -> None:
        """Hand out jobs of a queue again."""
        await self._store().resume_queue(check_name(queue, what="queue"))

    async def paused(self) -> Mapping[str, str | None]:
        """Return the paused queues with their reasons."""
        return await self._store().paused_queues()

    async def counts(self) -> Mapping[tuple[str, State], int]:
        """Return how many jobs each queue has in each state."""
        return await self._store().counts()
