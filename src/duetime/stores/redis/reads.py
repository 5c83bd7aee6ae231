"""Searches and counts that change nothing."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from duetime.model.limits import UNLIMITED, Gate
from duetime.model.states import State
from duetime.model.stored import StoredJob, StoredWorker
from duetime.stores.base import JobFilter
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.rows import ANSWER_DECODER, read_job, read_worker

if TYPE_CHECKING:
    from duetime.model.queues import QueueCensus, StateCount, StoredQueue


class RedisReads(RedisStorePart):
    """A part of `RedisStore`."""

    async def find(self, where: JobFilter) -> list[StoredJob]:
        """Return one page of jobs, newest first: along the shortest list that has them all."""
        from duetime.stores.redis.registries import search_request

        return await self._records("find", search_request(where), limit=where.limit)

    async def upcoming(self, limit: int) -> list[StoredJob]:
        """Return the pending jobs that fall due first, by due time."""
        _, found = await self._calls.read("upcoming", ANSWER_DECODER, {"limit": limit})
        first = [job_id for _, job_id in heapq.nsmallest(limit, found)]
        facts, records = await self._calls.read("get", ANSWER_DECODER, {"ids": first})
        jobs = [read_job(row, facts["now"]) for row in records]
        return [job for job in jobs if job.state is State.PENDING]

    async def workers(self) -> list[StoredWorker]:
        """Return all workers that are known, newest first."""
        facts, found = await self._calls.read("workers", ANSWER_DECODER)
        known = [worker for fields in found if (worker := read_worker(fields, facts["now"])) is not None]
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
        from duetime.stores.redis import registries as registers

        counts: Counter[tuple[str, State]] = Counter()
        async for _, some in self._walk("tally", {"after": "", "most": registers.JOBS_PER_CALL}):
            for tally in map(registers.read_tally, some):
                counts[tally.queue, tally.state] += tally.jobs
        return counts

    async def census(self, *, most: int) -> QueueCensus:
        """Count what is in each queue, up to a bound for each thing that is counted."""
        from duetime.model.queues import QueueCensus
        from duetime.stores.redis import registries as registers

        queues = await self._queues()
        _, waiting = await self._calls.read("tally_waiting", ANSWER_DECODER)
        gates, gated = await self._calls.read("tally_gated", ANSWER_DECODER, {"most": most})
        _, running = await self._calls.read("tally_running", ANSWER_DECODER)
        tallies = registers.read_waiting_tallies(waiting, most=most)
        tallies += map(registers.read_tally, [*gated, *running])
        latest = await self._latest(most)
        return QueueCensus(
            queues=queues,
            tallies=tallies + [tally for tally in latest if tally.state.terminal],
            gates_whole=gates["waiting"] < most,
            history_whole=sum(tally.jobs for tally in latest) < most,
        )

    async def _latest(self, most: int) -> list[StateCount]:
        """Count the newest jobs, whatever their state."""
        from duetime.stores.redis import registries as registers

        found: list[StateCount] = []
        asked = {"back": True, "after": registers.AFTER_ALL_IDS, "most": min(most, registers.JOBS_PER_CALL)}
        async for _, some in self._walk("tally", asked):
            found += map(registers.read_tally, some)
            if sum(tally.jobs for tally in found) >= most:
                break
        return found

    async def _queues(self) -> list[StoredQueue]:
        from duetime.stores.redis.registries import read_queue

        _, found = await self._calls.read("queues", ANSWER_DECODER)
        return [read_queue(row) for row in found]
