"""Queues as a client sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from duetime.errors import InvalidOption, NotConfirmed
from duetime.model import limits
from duetime.model.limits import Limit, Rate
from duetime.model.queues import RegistryCount, count_by_registry
from duetime.model.states import State
from duetime.model.stored.jobs import LiveWorkers
from duetime.model.text import check_name, check_reason
from duetime.model.time import describe_duration
from duetime.scheduler.audit import entry_about
from duetime.scheduler.records import QueueRecord
from duetime.stores.base import Store

_PURGE_STEP = 500
"""How many jobs one step of a purge cancels, so that others never wait long for the database."""
_MAX_COUNTED = 10_000
"""How many jobs of a kind are counted."""


class Queues:
    """Pauses, resumes, limits, counts and empties queues."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    async def pause(self, queue: str, *, reason: str | None = None, by: str | None = None) -> None:
        """Hand out nothing more from a queue; what is claimed already, or due within half a second, still runs."""
        why = None if reason is None else check_reason(reason)
        entry = entry_about("queue", check_name(queue, what="queue"), "pause", by, reason=why)
        await self._store().pause_queue(queue, reason=why, entry=entry)

    async def resume(self, queue: str, *, by: str | None = None) -> None:
        """Hand out jobs of a queue again."""
        entry = entry_about("queue", check_name(queue, what="queue"), "resume", by)
        await self._store().resume_queue(queue, entry=entry)

    async def purge(self, queue: str, *, confirm: str, reason: str = "purged", by: str | None = None) -> int:
        """Cancel all jobs of a queue that no worker has yet, and return how many; `confirm` repeats the queue's name.

        Done in small steps. What is enqueued meanwhile, and what workers have, stays.
        Raises `NotConfirmed` and changes nothing when the names differ.
        """
        name = check_name(queue, what="queue")
        if confirm != name:
            raise NotConfirmed(
                f"purging queue {name!r} needs confirm={name!r}, not {confirm!r}; nothing was purged"
            )
        why = check_reason(reason)
        entry = entry_about("queue", name, "purge", by, reason=why)
        store = self._store()
        before = await store.now()
        purged = 0
        while count := await store.purge(name, before=before, reason=why, limit=_PURGE_STEP, entry=entry):
            purged += count
        return purged

    async def paused(self) -> Mapping[str, str | None]:
        """Return the paused queues with their reasons."""
        queues = await self._store().queues()
        return {queue.name: queue.paused_reason for queue in queues if queue.paused_at is not None}

    async def limit(
        self,
        queue: str,
        most: int | Limit | None = None,
        *,
        rate: str | Rate | None = None,
        by: str | None = None,
    ) -> None:
        """Limit how many jobs of a queue run at once, and how many start in a period, over all workers.

        It holds for what starts from now on; without a number and a rate the queue is unlimited again.
        """
        gate = limits.gate(most, rate)
        if gate is not None and gate.by is not None:
            raise InvalidOption(f"a queue has no argument {gate.by!r} to be limited by; limit its tasks")
        limited = gate or limits.UNLIMITED
        pace = None if limited.count is None else f"{limited.count}/{describe_duration(limited.period)}"
        name = check_name(queue, what="queue")
        entry = entry_about("queue", name, "limit", by, limit=limited.most, rate=pace)
        await self._store().set_queue_limit(queue, gate, entry=entry)

    async def limits(self) -> Mapping[str, tuple[Limit | None, Rate | None]]:
        """Return the limited queues, each with its limit and its rate."""
        queues = await self._store().queues()
        return {queue.name: queue.limit.written() for queue in queues if queue.limit != limits.UNLIMITED}

    async def counts(self) -> Mapping[tuple[str, State], int]:
        """Return how many jobs each queue has in each state."""
        return await self._store().counts()

    async def get(self, queue: str) -> QueueRecord:
        """Return one queue as `list` does; one that nothing names is empty."""
        name = check_name(queue, what="queue")
        found = next((one for one in await self.list() if one.name == name), None)
        return found or QueueRecord.from_stored(name, None, RegistryCount(), workers=0)

    async def list(self) -> list[QueueRecord]:
        """Return all queues that have jobs, settings or a living worker, by name, with what is in them.

        Of many jobs no more than 10,000 of a kind are counted; `QueueRecord.at_least` names what was cut short.
        """
        store = self._store()
        census = await store.census(most=_MAX_COUNTED)
        fleet = LiveWorkers.of(await store.workers())
        settings = {queue.name: queue for queue in census.queues}
        counts = count_by_registry(census, fleet.queues | settings.keys())
        return [
            QueueRecord.from_stored(name, settings.get(name), count, workers=len(fleet.serving(name)))
            for name, count in sorted(counts.items())
        ]
