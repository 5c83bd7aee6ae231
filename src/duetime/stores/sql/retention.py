"""Remove what is old: records, and results and errors that have outlived their time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from duetime.model.job import JobId
from duetime.model.retention import Remains, Retention, is_latest, note_on, outlived
from duetime.model.states import State
from duetime.model.time import DAY, Instant
from duetime.stores.base import PruneResult
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.job_control import delete
from duetime.stores.sql.statements.rows import encode_batch
from duetime.stores.sql.verbs import SqlSubject, read, write

_PRUNED_AT_ONCE: Final = 1_000
"""How many jobs a prune looks at, and removes at most."""


class PrunePlan(NamedTuple):
    """What was found in a stretch of jobs."""

    gone: Sequence[JobId]
    """The records that may go."""
    outlived: Sequence[Remains]
    """Records that stay without their results or errors."""
    last: JobId | None
    """Where the next stretch begins; `None` after the last job."""


class SqlRetention(SqlSubject):
    """What goes when its time is over."""

    async def prune(self, retention: Retention, *, after: JobId = "", dry_run: bool = False) -> PruneResult:
        """Look at a stretch of jobs behind one, oldest first, and remove what is old.

        Job ids rise with time, so the oldest are at the front of the primary key and no index is kept for this.
        """
        found = await self._plan_prune(retention, after=after)
        if dry_run:
            return PruneResult(len(found.gone), found.last)
        if retention.before is not None and not after:
            await self._prune_workers(before=retention.before - DAY)
        gone = await self._carry_out(found) if found.gone or found.outlived else 0
        return PruneResult(gone, found.last)

    @read(rows=None)
    def _plan_prune(self, retention: Retention, *, after: JobId) -> Script[PrunePlan]:
        """Look at the next stretch of jobs and tell what of it has to go."""
        found = yield Query(self._sql.prunable, {"after": after, "stretch": _PRUNED_AT_ONCE})
        last: JobId | None = found[-1][1] if len(found) == _PRUNED_AT_ONCE else None
        now: Instant = found[0][0] if found else 0
        ended = [
            Remains(job_id, State(state), *rest) for _, job_id, state, *rest in found if rest[0] is not None
        ]
        old = [job for job in ended if retention.covers(job, now=now)]
        firsts = yield from self._first_latest(old, keep=retention.keep_per_schedule)
        gone = [job.id for job in old if not is_latest(job, firsts)]
        return PrunePlan(gone, outlived(ended, going=frozenset(gone), now=now), last)

    @write(rows=None)
    def _carry_out(self, found: PrunePlan) -> Script[int]:
        """Delete what may go, with attempts and logs, and empty what stays; return how many records went."""
        if found.outlived:
            notes = [(job.id, note_on(job.state, job.ttl)) for job in found.outlived]
            yield Query(self._sql.forget, {"rows": encode_batch(notes)})
            failed = [(job.id,) for job in found.outlived if job.state is State.FAILED]
            yield Query(self._sql.forget_attempts, {"rows": encode_batch(failed)})
        return len((yield from delete(self._sql, found.gone)))

    @write(rows=None)
    def _prune_workers(self, *, before: Instant) -> Script[None]:
        """Forget workers that went long ago, and the commands, entries, announcements and credentials of that time."""
        yield Query(self._sql.prune_workers, {"before": before})
        yield Query(self._sql.prune_commands, {"before": before})
        yield Query(self._sql.prune_entries, {"before": before})
        yield Query(self._sql.prune_tasks, {"before": before})
        yield Query(self._sql.prune_credentials, {"before": before})

    def _first_latest(self, old: Iterable[Remains], *, keep: int) -> Script[Mapping[str, Instant | None]]:
        schedules = {(job.schedule,) for job in old if job.schedule is not None}
        if not schedules or not keep:
            return {}
        values = {"rows": encode_batch(sorted(schedules)), "others": keep - 1}
        found = yield Query(self._sql.latest_occurrences, values)
        return {name: first for name, first in found}  # noqa: C416 - `dict` would not know the types
