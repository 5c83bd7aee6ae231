"""Searches and counts that change nothing."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final

from duetime.model.ids import first_id_of
from duetime.model.job import JobKind, join_tags
from duetime.model.limits import Gate
from duetime.model.queues import DueJobs, QueueCensus, StateCount, StoredQueue, registry_of
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob, StoredWorker
from duetime.stores.base import BEHIND_ALL_IDS, JobFilter, JobPage
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.messages import NamedValues, read_job, read_worker

_HISTORY: Final = 5_000
"""How many of the newest jobs are counted at most: each is looked up."""
JOBS_PER_CALL: Final = 500
"""How many jobs one call looks at."""


class RedisReads(RedisStorePart):
    """A part of `RedisStore`."""

    async def find(self, where: JobFilter) -> JobPage:
        """Return one page of jobs, newest first: along the shortest list that has them all."""
        asked = search_request(where)
        found: list[StoredJob] = []
        looked_at, looked_to = 0, None
        async for facts, some in self._walk("find", asked):
            found += [read_job(row, facts["now"]) for row in some]
            looked_at += asked["most"]
            if len(found) >= where.limit:
                break
            if where.look_at is not None and looked_at >= where.look_at:
                looked_to = facts.get("last")
                break
        return JobPage(found[: where.limit], looked_to=looked_to)

    async def upcoming(self, limit: int) -> list[StoredJob]:
        """Return the pending jobs that fall due first, by due time."""
        _, found = await self._calls.read("upcoming", {"limit": limit})
        first = [job_id for _, job_id in heapq.nsmallest(limit, found)]
        answer = await self._calls.read("get", {"ids": first})
        jobs = [read_job(row, answer.now) for row in answer.rows]
        return [job for job in jobs if job.state is State.PENDING]

    async def workers(self) -> list[StoredWorker]:
        """Return all workers that are known, newest first."""
        answer = await self._calls.read("workers")
        known = [worker for fields in answer.rows if (worker := read_worker(fields, answer.now)) is not None]
        return sorted(known, key=lambda worker: (-worker.started_at, worker.id))

    async def queues(self) -> list[StoredQueue]:
        """Return what is set for queues, by name."""
        return [read_queue(row) for row in (await self._calls.read("queues")).rows]

    async def counts(self) -> Mapping[tuple[str, State], int]:
        """Return how many jobs each queue has in each state."""
        counts: Counter[tuple[str, State]] = Counter()
        async for _, some in self._walk("tally", {"after": "", "most": JOBS_PER_CALL}):
            for tally in map(read_tally, some):
                counts[tally.queue, tally.state] += tally.jobs
        return counts

    async def census(self, *, most: int) -> QueueCensus:
        """Count what is in each queue, up to a bound for each thing that is counted."""
        _, waiting = await self._calls.read("tally_waiting")
        gates, gated = await self._calls.read("tally_gated", {"most": most})
        _, running = await self._calls.read("tally_running")
        tallies = read_waiting_tallies(waiting, most=most)
        tallies += map(read_tally, [*gated, *running])
        history = min(most, _HISTORY)
        latest = await self._latest(history)
        return QueueCensus(
            queues=await self.queues(),
            tallies=tallies + [tally for tally in latest if tally.state.terminal],
            gates_whole=gates["waiting"] < most,
            history_whole=sum(tally.jobs for tally in latest) < history,
        )

    async def due_jobs(self, *, most: int) -> list[DueJobs]:
        """Tell which tasks the due jobs that no worker has are of; in queues, all of them are counted."""
        _, found = await self._calls.read("due_jobs", {"most": most})
        return sorted(DueJobs(*row) for row in found)

    async def _latest(self, most: int) -> list[StateCount]:
        """Count the newest jobs, whatever their state."""
        found: list[StateCount] = []
        asked = {"back": True, "after": BEHIND_ALL_IDS, "most": min(most, JOBS_PER_CALL)}
        async for _, some in self._walk("tally", asked):
            found += map(read_tally, some)
            if sum(tally.jobs for tally in found) >= most:
                break
        return found


def search_request(where: JobFilter) -> NamedValues:
    """Say which jobs are wanted, and along which list they are looked for."""
    index, part = _index(where)
    same = {"task": where.task, "queue": where.queue, "schedule": where.schedule, "unique_key": where.key}
    return {
        "index": index,
        "part": part,
        "back": True,
        "after": where.before or BEHIND_ALL_IDS,
        "from": None if where.since is None else first_id_of(where.since),
        "same": same,
        "scheduled": None if where.kind is None else where.kind is JobKind.SCHEDULED,
        "since": where.since,
        "til": where.until,
        "tag": where.tag and join_tags((where.tag,)),
        "standings": _standings(where),
        "limit": where.limit,
        "most": JOBS_PER_CALL if where.look_at is None else min(JOBS_PER_CALL, where.look_at),
    }


def _index(where: JobFilter) -> tuple[str, str | None]:
    if where.wants_running:
        return "held", None
    if where.schedule is not None:
        return "history", where.schedule
    return "live" if where.wants_live else "unsuccessful" if where.wants_unsuccessful else "jobs", None


def _standings(where: JobFilter) -> dict[str, bool] | None:
    """Name every state that a job may be in, with whether it is due and whether it has started; `None`: any."""
    if not where.states and where.registry is None:
        return None
    return {
        f"{state}|{due:d}|{started:d}": True
        for state, due, started in product(State, (False, True), (False, True))
        if state in (where.states or State)
        and where.registry in {None, registry_of(state, due=due, started=started)}
    }


def read_tally(row: Sequence[Any]) -> StateCount:
    """Build what was counted of one kind in a queue."""
    queue, state, count, due, started = row
    return StateCount(queue, State(state), count, due=due, started=started)


def read_waiting_tallies(found: Iterable[tuple[str, int, int]], *, most: int) -> list[StateCount]:
    """Tell what waits in each queue, what is due and what is not, up to a bound."""
    return [
        StateCount(queue, State.PENDING, min(jobs, most), due=is_due, whole=jobs < most)
        for queue, due, later in found
        for jobs, is_due in ((due, True), (later, False))
    ]


def read_queue(row: Sequence[Any]) -> StoredQueue:
    """Build what is set for a queue."""
    name, at, why, most, count, period = row
    return StoredQueue(name=name, paused_at=at, paused_reason=why, limit=Gate(most, count, period or 0))
