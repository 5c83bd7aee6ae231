"""Schedules: writes, fires, deletes, backfills and lists them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from typing import Final

from duetime.errors import StoreUnavailable
from duetime.model.job import JobId, NewJob
from duetime.model.schedule.actions import CodeSchedule
from duetime.model.schedule.occurrences import SpanCut
from duetime.model.schedule.record import SUPERSEDED, Firing, ScheduleUpdate, StoredSchedule
from duetime.model.schedule.runs import RUN_ENDS, ScheduleRuns, StoredRun, runs_by_schedule
from duetime.model.stored.audit import AuditEntry, StoredAuditEntry
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import Instant, Micros
from duetime.stores.base import DueSchedules, Hint
from duetime.stores.base.jobs import job_hints
from duetime.stores.redis import messages
from duetime.stores.redis.enqueue import RedisEnqueuing
from duetime.stores.redis.runs import callbacks_of_cancelled

_TRIES: Final = 20
"""How often a decision is made anew that others have overtaken."""
_ROWS_PER_CALL: Final = 200
"""How many schedules or records one call looks at."""
_LIVE_JOBS_PER_CALL: Final = 1_000
"""How many jobs that have not ended one call looks at."""
_SCHEDULES_HINT: Final = Hint("schedules")


class RedisSchedules(RedisEnqueuing):
    """A part of `RedisStore`."""

    async def write_schedules(
        self, changes: Sequence[ScheduleUpdate], *, whole: bool = False
    ) -> frozenset[str]:
        """Write each change whose schedule is as it was read, jobs and entries included; return their names."""
        if not changes:
            return frozenset()
        written = [messages.change_fields(change) for change in changes]
        hints = (_SCHEDULES_HINT, *job_hints(job for change in changes for job in change.jobs))
        several = sum(1 + len(change.jobs) for change in changes)
        while True:
            request = {"changes": written, "whole": whole}
            facts, _ = await self._calls.write("write_schedules", request, hints=hints, rows=several)
            if "crowded" not in facts:
                return frozenset(facts["names"])
            crowded: list[int] = facts["crowded"]
            for place in crowded:
                withdraw = written[place - 1]["withdraw"]
                withdraw["ids"] = await self._planted(changes[place - 1].after.name, withdraw)

    async def due_schedules(self, *, ahead: Micros, limit: int) -> DueSchedules:
        """Return what is to be fired or to go on now, and when to look again."""
        # One more of each than asked for tells whether others have to wait.
        facts, found = await self._calls.read("due_schedules", {"ahead": ahead, "limit": limit + 1})
        schedules = [messages.read_record(StoredSchedule, row) for row in found]
        due = DueSchedules(facts["now"], schedules, facts.get("next_at"), facts.get("resumes_at"))
        return due.up_to(limit)

    async def fire(self, firings: Sequence[Firing]) -> frozenset[str]:
        """Apply each firing whose compare-and-set holds, jobs included."""
        names = frozenset[str]()
        called: dict[JobId, list[dict[str, object]]] = {}
        waiting = list(firings)
        for _ in range(_TRIES):
            if not waiting:
                return names
            listed = [messages.firing_fields(firing) for firing in waiting]
            request = {"firings": listed, "superseded": SUPERSEDED, "called": called}
            hints = job_hints(job for firing in waiting for job in firing.jobs)
            several = sum(1 + len(firing.jobs) for firing in waiting)
            facts, found = await self._calls.write("fire", request, hints=hints, rows=several)
            names |= frozenset(facts["names"])
            left = set[str | None]()
            for standing in (messages.read_job_with_claim(row, facts["now"]) for row in found):
                called[standing.job.id] = callbacks_of_cancelled(standing, reason=SUPERSEDED)
                left.add(standing.job.schedule)
            waiting = [firing for firing in waiting if firing.name in left]
        raise StoreUnavailable("jobs that were to make room for the next changed again and again")

    async def delete_schedule(self, name: str, entry: AuditEntry) -> bool:
        """Remove a schedule and withdraw its planted, unstarted jobs."""
        withdraw: messages.NamedValues = {"reason": "schedule deleted", "held": True, "drawn": True}
        request: messages.NamedValues = {
            "name": name,
            "withdraw": withdraw,
            "entry": messages.entry_fields(entry),
        }
        for _ in range(_TRIES):
            facts, _ = await self._calls.write("delete_schedule", request, hints=[_SCHEDULES_HINT])
            if "crowded" not in facts:
                return bool(facts["deleted"])
            request["was"] = facts["crowded"]
            withdraw["ids"] = await self._planted(name, withdraw)
        raise StoreUnavailable(f"schedule {name!r} fired again and again while it was to be deleted")

    async def _planted(self, name: str, withdraw: messages.NamedValues) -> list[JobId]:
        """Look for what a schedule has planted among much that it has not finished."""
        asked = {"name": name, "drawn": withdraw["drawn"], "most": _LIVE_JOBS_PER_CALL}
        return [job_id async for facts, _ in self._walk("planted", asked) for job_id in facts["ids"]]

    async def backfill(
        self, jobs: Sequence[NewJob], entry: AuditEntry, *, cuts: Sequence[SpanCut] = ()
    ) -> list[JobId] | None:
        """Store jobs for occurrences that have none, and return their ids."""
        if not jobs:
            return []
        made = [*(record for cut in cuts for record in cut.others), *jobs]
        request = {
            "jobs": [messages.job_fields(job) for job in made],
            "wanted": [(job.id, job.schedule, job.occurrence) for job in jobs],
            "cuts": [messages.cut_fields(cut) for cut in cuts],
            "entry": messages.entry_fields(entry),
        }
        facts, _ = await self._calls.write("backfill", request, hints=job_hints(jobs), rows=len(made))
        ids: list[JobId] = facts["ids"]
        # Where a record has changed, either another was faster, or it was this very call, of which the answer was lost.
        return ids if facts["whole"] else ids or None

    async def schedules(
        self, *, after: str = "", limit: int | None = None, queues: Collection[str] | None = None
    ) -> list[StoredSchedule]:
        """Return schedules by name."""
        most = _ROWS_PER_CALL if limit is None else min(limit, _ROWS_PER_CALL)
        found: list[StoredSchedule] = []
        async for _, some in self._walk("schedules", {"after": after, "most": most}):
            read = [messages.read_record(StoredSchedule, row) for row in some]
            found += [one for one in read if queues is None or one.queue in queues]
            if limit is not None and len(found) >= limit:
                break
        return found[:limit]

    async def code_schedules(self) -> list[CodeSchedule]:
        """Return the schedules that code has declared, in brief."""
        walk = self._walk("code_schedules", {"after": "", "most": _ROWS_PER_CALL})
        return [CodeSchedule(*row) async for _, some in walk for row in some]

    async def get_schedules(self, names: Sequence[str]) -> list[StoredSchedule]:
        """Return the schedules that exist, by name."""
        _, found = await self._calls.read("get_schedules", {"names": sorted(names)})
        return [messages.read_record(StoredSchedule, row) for row in found]

    async def occurrences(self, name: str, *, since: Instant, until: Instant, limit: int) -> list[StoredJob]:
        """Return the records of a schedule for a stretch of time, by occurrence."""
        asked = {"name": name, "after": since, "til": until, "most": min(limit, _ROWS_PER_CALL)}
        return await self._records("occurrences", asked, limit=limit)

    async def past_occurrences(
        self, name: str, *, until: Instant, limit: int, made: bool = False
    ) -> list[StoredJob]:
        """Return the records of a schedule up to an instant, latest first."""
        asked = {"name": name, "after": until, "made": made, "limit": limit, "most": _ROWS_PER_CALL}
        return await self._records("past_occurrences", asked, limit=limit)

    async def runs(self, names: Sequence[str], *, most: int) -> dict[str, ScheduleRuns]:
        """Return how schedules fare, by name."""
        if not names:
            return {}
        asked = {"names": names, "states": RUN_ENDS, "most": most + 1}
        facts, found = await self._calls.read("runs", asked, rows=len(names))
        counts = dict(zip(product(names, RUN_ENDS), facts["counts"], strict=True))
        found_runs = [StoredRun.from_row(row, now=facts["now"]) for row in found]
        return runs_by_schedule(counts, found_runs, most=most)

    async def entries(
        self, target: str | None, *, limit: int, before: str | None = None
    ) -> list[StoredAuditEntry]:
        """Return what was done to something, or at all, newest first."""
        request = {"target": target, "limit": limit, "before": before}
        return [messages.read_entry(row) for row in (await self._calls.read("entries", request)).rows]
