"""What every store can do with schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from duetime.model.audit import AuditEntry, StoredEntry
from duetime.model.instants import Instant, Micros
from duetime.model.job import JobId, NewJob
from duetime.model.parking import CodeSchedule
from duetime.model.schedule import Change, Firing, StoredSchedule
from duetime.model.stored import StoredJob
from duetime.stores.base.values import DueSchedules

if TYPE_CHECKING:
    from duetime.model.spans import Cut


class ScheduleStore(Protocol):
    """Schedules."""

    async def write_schedules(self, changes: Sequence[Change], *, whole: bool = False) -> frozenset[str]:
        """Write, in one atomic step, each change whose schedule is as it was read; return the names written.

        `whole`: all of them or, where one cannot be written, none. With each go its jobs and its entry, and planted jobs that have not started are withdrawn where asked for.
        A change that had been written before, which its entry tells, counts as written, so a lost answer can be repeated.
        """
        ...

    async def due_schedules(self, *, ahead: Micros, limit: int) -> DueSchedules:
        """Return schedules whose next time lies at most `ahead` from now, earliest first.

        Paused ones come only when the time has come until which they were paused; parked ones never.
        """
        ...

    async def fire(self, firings: Sequence[Firing]) -> frozenset[str]:
        """Apply each firing whose compare-and-set holds, jobs included, and return the names applied."""
        ...

    async def delete_schedule(self, name: str, entry: AuditEntry) -> bool:
        """Remove a schedule and withdraw its planted, unstarted jobs; False when unknown.

        True also when it was this deletion, which its entry tells, that had removed it before.
        """
        ...

    async def backfill(
        self, jobs: Sequence[NewJob], entry: AuditEntry, *, cuts: Sequence[Cut] = ()
    ) -> list[JobId] | None:
        """Store jobs for occurrences, and return the ids of those that are stored.

        An occurrence that has a record already is left alone, unless a cut lets it give way. `None`: a record that was
        to be cut is not as it was read, and nothing was done. The entry is kept if something was stored. Safe to repeat.
        """
        ...

    async def schedules(self) -> list[StoredSchedule]:
        """Return all schedules by name."""
        ...

    async def code_schedules(self) -> list[CodeSchedule]:
        """Return the schedules that code has declared, in brief."""
        ...

    async def get_schedules(self, names: Sequence[str]) -> list[StoredSchedule]:
        """Return the schedules that exist, by name."""
        ...

    async def occurrences(self, name: str, *, since: Instant, until: Instant, limit: int) -> list[StoredJob]:
        """Return the records of a schedule whose occurrence lies in a stretch of time, and the first one after it.

        By occurrence; the one after it may stand for a run of skipped ones that begins earlier.
        """
        ...

    async def past_occurrences(
        self, name: str, *, until: Instant, limit: int, made: bool = False
    ) -> list[StoredJob]:
        """Return the records of a schedule up to an instant, latest first; `made`: without what was skipped."""
        ...

    async def entries(self, target: str, *, limit: int, before: str | None = None) -> list[StoredEntry]:
        """Return what was done to something, newest first; `before`: only what is older than this entry."""
        ...
