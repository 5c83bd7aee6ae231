"""The verbs of a SQL store about schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from duetime.model.audit import AuditEntry, StoredEntry
from duetime.model.instants import Instant, Micros
from duetime.model.job import JobId, NewJob
from duetime.model.parking import CodeSchedule
from duetime.model.schedule import Change, Firing, StoredSchedule
from duetime.stores.base import DueSchedules, Hint
from duetime.stores.sql.driver import TakenBack
from duetime.stores.sql.enqueuing import Enqueuing
from duetime.stores.sql.operations import Operations
from duetime.stores.sql.scripts import schedules as on_schedules

if TYPE_CHECKING:
    from duetime.model.spans import Cut
    from duetime.model.stored import StoredJob


class Scheduling(Operations):
    """A part of `SqlStore`, which has the driver and the statements."""

    _enqueuing: Enqueuing

    async def write_schedules(self, changes: Sequence[Change], *, whole: bool = False) -> frozenset[str]:
        """Write each change whose schedule is as it was read, jobs and entries included; return their names."""
        if not changes:
            return frozenset()
        try:
            written = await self._driver.write(
                lambda: on_schedules.write(self._sql, changes, whole=whole),
                rows=sum(1 + len(change.jobs) for change in changes),
            )
        except TakenBack:
            return frozenset()
        self._hint_schedules(written)
        self._enqueuing.hint(job for c in changes if c.after.name in written.names for job in c.jobs)
        return written.names

    async def due_schedules(self, *, ahead: Micros, limit: int) -> DueSchedules:
        """Return what is to be fired or to go on now, and when to look again."""
        return await self._driver.read(
            lambda: on_schedules.due_schedules(self._sql, ahead=ahead, limit=limit), rows=limit
        )

    async def fire(self, firings: Sequence[Firing]) -> frozenset[str]:
        """Apply each firing whose compare-and-set holds, jobs included."""
        if not firings:
            return frozenset()
        fired = await self._driver.write(
            lambda: on_schedules.fire(self._sql, firings),
            rows=sum(1 + len(firing.jobs) for firing in firings),
        )
        self._enqueuing.hint(job for firing in firings if firing.name in fired.names for job in firing.jobs)
        self._hint_workers(fired.workers)
        return fired.names

    async def delete_schedule(self, name: str, entry: AuditEntry) -> bool:
        """Remove a schedule and withdraw its planted, unstarted jobs."""
        written = await self._driver.write(lambda: on_schedules.delete(self._sql, name, entry))
        self._hint_schedules(written)
        return bool(written.names)

    async def backfill(
        self, jobs: Sequence[NewJob], entry: AuditEntry, *, cuts: Sequence[Cut] = ()
    ) -> list[JobId] | None:
        """Store jobs for occurrences that have none, and return their ids."""
        if not jobs:
            return []
        ids = await self._driver.write(lambda: on_schedules.backfill(self._sql, jobs, cuts, entry), rows=None)
        stored = frozenset(ids or ())
        self._enqueuing.hint(job for job in jobs if job.id in stored)
        return ids

    async def schedules(self) -> list[StoredSchedule]:
        """Return all schedules by name."""
        return await self._driver.read(lambda: on_schedules.schedules(self._sql), rows=None)

    async def code_schedules(self) -> list[CodeSchedule]:
        """Return the schedules that code has declared, in brief."""
        return await self._driver.read(lambda: on_schedules.code_schedules(self._sql), rows=None)

    async def get_schedules(self, names: Sequence[str]) -> list[StoredSchedule]:
        """Return the schedules that exist, by name."""
        return await self._driver.read(lambda: on_schedules.get_schedules(self._sql, names), rows=len(names))

    async def occurrences(self, name: str, *, since: Instant, until: Instant, limit: int) -> list[StoredJob]:
        """Return the records of a schedule for a stretch of time, by occurrence."""
        return await self._driver.read(
            lambda: on_schedules.occurrences(self._sql, name, since=since, until=until, limit=limit),
            rows=None,
        )

    async def past_occurrences(
        self, name: str, *, until: Instant, limit: int, made: bool = False
    ) -> list[StoredJob]:
        """Return the records of a schedule up to an instant, latest first."""
        return await self._driver.read(
            lambda: on_schedules.past_occurrences(self._sql, name, until=until, limit=limit, made=made),
            rows=None,
        )

    async def entries(self, target: str, *, limit: int, before: str | None = None) -> list[StoredEntry]:
        """Return what was done to something, newest first."""
        return await self._driver.read(
            lambda: on_schedules.entries(self._sql, target, limit=limit, before=before), rows=None
        )

    def _hint_schedules(self, written: on_schedules.Written) -> None:
        if written.names:
            self._driver.hint(Hint("schedules"))
        self._hint_workers(written.workers)
