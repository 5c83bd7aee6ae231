"""The verbs of a Redis store that only read."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from duetime.model.limit import UNLIMITED, Gate
from duetime.model.states import State
from duetime.model.stored import StoredJob, StoredWorker
from duetime.stores.base import JobFilter
from duetime.stores.redis import rows
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS

if TYPE_CHECKING:
    from duetime.model.registries import Census, StoredQueue, Tally


class Reading(Part):
    """A part of `RedisStore`."""

    async def find(self, where: JobFilter) -> list[StoredJob]:
        """Return one page of jobs, newest first: along the shortest list that has them all."""
        from duetime.stores.redis.registers import asked

        return await self._records("find", asked(where), limit=where.limit)

    async def upcoming(self, limit: int) -> list[StoredJob]:
        """Return the pending jobs that fall due first, by due time."""
        _, found = await self._calls.read("upcoming", FACTS, {"limit": limit})
        first = [job_id for _, job_id in heapq.nsmallest(limit, found)]
        facts, records = await self._calls.read("get", FACTS, {"ids": first})
        jobs = [rows.job(row, facts["now"]) for row in records]
        return [job for job in jobs if job.state is State.PENDING]

    async def workers(self) -> list[StoredWorker]:
        """Return all workers that are known, newest first."""
        facts, found = await self._calls.read("workers", FACTS)
        known = [worker for fields in found if (worker := rows.worker(fields, facts["now"])) is not None]
        return sorted(known, key=lambda worker: (-worker.started_at, worker.id))

    async def paused_queues(self) -> Mapping[str, str | None]:
        """Return the paused queues with their reasons."""
        return {
            queue.name: queue.paused_reason for queue in await self._queues() if queue.paused_at is not None
        }

    async def queue_limits(self) -> Mapping[str, Gate]:
        """Return the limited queues with their limits."""
        return {queue.name: queue.limit for queue in await self._queues() if queue.limit != UNLIMITED}

    async def counts(self) -> Mapping[tuple[str, State], int]:
        """Return how many jobs each queue has in each state."""
        from duetime.stores.redis import registers

        counts: Counter[tuple[str, State]] = Counter()
        async for _, some in self._walk("tally", {"after": "", "most": registers.STRETCH}):
            for tally in map(registers.tally, some):
                counts[tally.queue, tally.state] += tally.jobs
        return counts

    async def census(self, *, most: int) -> Census:
        """Count what is in each queue, up to a bound for each thing that is counted."""
        from duetime.model.registries import Census
        from duetime.stores.redis import registers

        queues = await self._queues()
        _, waiting = await self._calls.read("tally_waiting", FACTS)
        gates, gated = await self._calls.read("tally_gated", FACTS, {"most": most})
        _, running = await self._calls.read("tally_running", FACTS)
        tallies = registers.tallies_of_waiting(waiting, most=most)
        tallies += map(registers.tally, [*gated, *running])
        latest = await self._latest(most)
        return Census(
            queues=queues,
            tallies=tallies + [tally for tally in latest if tally.state.terminal],
            gates_whole=gates["waiting"] < most,
            history_whole=sum(tally.jobs for tally in latest) < most,
        )

    async def _latest(self, most: int) -> list[Tally]:
        """Count the newest jobs, whatever their state."""
        from duetime.stores.redis import registers

        found: list[Tally] = []
        asked = {"back": True, "after": registers.BEHIND_ALL, "most": min(most, registers.STRETCH)}
        async for _, some in self._walk("tally", asked):
            found += map(registers.tally, some)
            if sum(tally.jobs for tally in found) >= most:
                break
        return found

    async def _queues(self) -> list[StoredQueue]:
        from duetime.stores.redis.registers import queue

        _, found = await self._calls.read("queues", FACTS)
        return [queue(row) for row in found]
