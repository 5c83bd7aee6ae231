"""Remove what is old: records, and results and errors that have outlived their time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from duetime.model.job import JobId
from duetime.model.retention import Remains, Retention, is_latest, note_on, outlived
from duetime.model.states import State
from duetime.model.time import Instant
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import encode_batch


class PrunePlan(NamedTuple):
    """What was found in a stretch of jobs."""

    gone: Sequence[JobId]
    """The records that may go."""
    outlived: Sequence[Remains]
    """Records that stay without their results or errors."""
    last: JobId | None
    """Where the next stretch begins; `None` after the last job."""


def look(sql: Statements, retention: Retention, *, after: JobId, stretch: int) -> Script[PrunePlan]:
    """Look at the next stretch of jobs and tell what of it has to go."""
    found = yield Query(sql.prunable, {"after": after, "stretch": stretch})
    last: JobId | None = found[-1][1] if len(found) == stretch else None
    now: Instant = found[0][0] if found else 0
    ended = [Remains(job_id, State(state), *rest) for _, job_id, state, *rest in found if rest[0] is not None]
    old = [job for job in ended if retention.covers(job, now=now)]
    firsts = yield from _first_latest(sql, old, keep=retention.keep_per_schedule)
    gone = [job.id for job in old if not is_latest(job, firsts)]
    return PrunePlan(gone, outlived(ended, going=frozenset(gone), now=now), last)


def carry_out(sql: Statements, found: PrunePlan) -> Script[int]:
    """Delete what may go, with attempts and logs, and empty what stays; return how many records went."""
    if found.outlived:
        notes = [(job.id, note_on(job.state, job.ttl)) for job in found.outlived]
        yield Query(sql.forget, {"rows": encode_batch(notes)})
        failed = [(job.id,) for job in found.outlived if job.state is State.FAILED]
        yield Query(sql.forget_attempts, {"rows": encode_batch(failed)})
    listed = encode_batch((job_id,) for job_id in found.gone)
    yield Query(sql.prune_attempts, {"rows": listed})
    yield Query(sql.prune_logs, {"rows": listed})
    gone = yield Query(sql.prune_jobs, {"rows": listed})
    return len(gone)


def prune_workers(sql: Statements, *, before: Instant) -> Script[None]:
    """Forget workers that have been gone for long, and what they were told and schedules went through that long ago."""
    yield Query(sql.prune_workers, {"before": before})
    yield Query(sql.prune_commands, {"before": before})
    yield Query(sql.prune_entries, {"before": before})


def _first_latest(
    sql: Statements, old: Iterable[Remains], *, keep: int
) -> Script[Mapping[str, Instant | None]]:
    schedules = {job.schedule for job in old if job.schedule is not None} if keep else set[str]()
    if not schedules:
        return {}
    named = encode_batch((name,) for name in sorted(schedules))
    found = yield Query(sql.latest_occurrences, {"rows": named, "others": keep - 1})
    return {name: first for name, first in found}  # noqa: C416 - `dict` would not know the types
