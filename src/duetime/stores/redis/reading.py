"""The verbs of a Redis store that only read."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Any, Final

from duetime.model.ids import first_id_of
from duetime.model.job import StoredJob
from duetime.model.limit import UNLIMITED, Gate
from duetime.model.registries import LIVE, Census, Registry, StoredQueue, Tally, registry_of
from duetime.model.states import State
from duetime.model.terms import join_tags
from duetime.model.worker import StoredWorker
from duetime.stores.base import JobFilter
from duetime.stores.redis import rows
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS, Facts

_STRETCH: Final = 500
"""How many jobs one call looks at."""
_BEHIND_ALL: Final = "\N{TILDE}"
"""What comes after every id."""
_LIVE_STATES: Final = frozenset({State.PENDING, State.RUNNING})
_UNSUCCESSFUL_STATES: Final = frozenset({State.FAILED, State.CANCELLED, State.SKIPPED})
_UNSUCCESSFUL: Final = frozenset({Registry.FAILED, Registry.CANCELLED, Registry.SKIPPED})


class Reading(Part):
    """A part of `RedisStore`."""

    async def find(self, where: JobFilter) -> list[StoredJob]:
        """Return one page of jobs, newest first: along the shortest list that has them all."""
        return await self._records("find", _asked(where), limit=where.limit)

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
        known = [rows.worker(fields, facts["now"]) for fields in found]
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
        counts: Counter[tuple[str, State]] = Counter()
        async for _, some in self._walk("tally", {"after": "", "most": _STRETCH}):
            for tally in map(_tally, some):
                counts[tally.queue, tally.state] += tally.jobs
        return counts

    async def census(self, *, most: int) -> Census:
        """Count what is in each queue, up to a bound for each thing that is counted."""
        queues = await self._queues()
        tallies: list[Tally] = []
        _, waiting = await self._calls.read("tally_waiting", FACTS)
        for queue, due, later in waiting:
            tallies.append(Tally(queue, State.PENDING, min(due, most), due=True, whole=due < most))
            tallies.append(Tally(queue, State.PENDING, min(later, most), whole=later < most))
        gates, gated = await self._calls.read("tally_gated", FACTS, {"most": most})
        _, running = await self._calls.read("tally_running", FACTS)
        tallies += map(_tally, [*gated, *running])
        latest = await self._latest(most)
        return Census(
            queues=queues,
            tallies=tallies + [tally for tally in latest if tally.state.terminal],
            gates_whole=gates["waiting"] < most,
            history_whole=sum(tally.jobs for tally in latest) < most,
        )

    async def _latest(self, most: int) -> list[Tally]:
        """Count the newest jobs, whatever their state."""
        found: list[Tally] = []
        asked = {"back": True, "after": _BEHIND_ALL, "most": min(most, _STRETCH)}
        async for _, some in self._walk("tally", asked):
            found += map(_tally, some)
            if sum(tally.jobs for tally in found) >= most:
                break
        return found

    async def _queues(self) -> list[StoredQueue]:
        _, found = await self._calls.read("queues", FACTS)
        return [
            StoredQueue(name=name, paused_at=at, paused_reason=why, limit=Gate(at_once, count, period or 0))
            for name, at, why, at_once, count, period in found
        ]


def _asked(where: JobFilter) -> Facts:
    """Say which jobs are wanted, by which columns that is decided, and along which list they are looked for."""
    index, part = _index(where)
    same = {"task": where.task, "queue": where.queue, "schedule": where.schedule, "unique_key": where.key}
    same = {name: value for name, value in same.items() if value is not None}
    standings = _standings(where)
    return {
        "index": index,
        "part": part,
        "back": True,
        "after": where.before or _BEHIND_ALL,
        "from": None if where.since is None else first_id_of(where.since),
        "same": same,
        "since": where.since,
        "tag": where.tag and join_tags((where.tag,)),
        "standings": standings,
        "columns": [
            *same,
            *(["created_at"] if where.since is not None else []),
            *(["tags"] if where.tag is not None else []),
            *(["state", "due_at", "started_at"] if standings is not None else []),
        ],
        "limit": where.limit,
        "most": _STRETCH,
    }


def _index(where: JobFilter) -> tuple[str, str | None]:
    if where.schedule is not None:
        return "history", where.schedule
    if where.state in _LIVE_STATES or where.registry in LIVE:
        return "live", None
    seldom = where.state in _UNSUCCESSFUL_STATES or where.registry in _UNSUCCESSFUL
    return ("unsuccessful", None) if seldom else ("jobs", None)


def _standings(where: JobFilter) -> dict[str, bool] | None:
    """Name every state that a job may be in, with whether it is due and whether it has started; `None`: any."""
    if where.state is None and where.registry is None:
        return None
    return {
        f"{state}|{due:d}|{started:d}": True
        for state, due, started in product(State, (False, True), (False, True))
        if where.state in {None, state}
        and where.registry in {None, registry_of(state, due=due, started=started)}
    }


def _tally(row: list[Any]) -> Tally:
    queue, state, count, due, started = row
    return Tally(queue, State(state), count, due=due, started=started)
