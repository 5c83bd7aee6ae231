"""Failed jobs, grouped by what went wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from duetime.model.job import JobId
from duetime.scheduler.records import JobRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Failures of one task that are of one kind and come from one place."""

    fingerprint: str | None
    """`None` for those without: crashes, and failures whose errors are not kept."""
    task: str
    error_type: str | None
    error: str | None
    """The text of the latest; the others may differ in it."""
    count: int
    first_at: datetime
    last_at: datetime
    latest: JobId
    """The job that failed last."""


def group_failures(jobs: Iterable[JobRecord]) -> list[FailureGroup]:
    """Return the groups of some failed jobs, the largest first."""
    groups: dict[tuple[str, str | None, str | None], list[JobRecord]] = {}
    for job in jobs:
        kind = job.error_type if job.fingerprint is None else None
        groups.setdefault((job.task, job.fingerprint, kind), []).append(job)
    return sorted(map(_group, groups.values()), key=lambda group: (-group.count, group.task, group.latest))


def _group(jobs: list[JobRecord]) -> FailureGroup:
    ended = sorted((job.finished_at or job.created_at, job.id, job) for job in jobs)
    latest = ended[-1][2]
    return FailureGroup(
        fingerprint=latest.fingerprint,
        task=latest.task,
        error_type=latest.error_type,
        error=latest.error,
        count=len(jobs),
        first_at=ended[0][0],
        last_at=ended[-1][0],
        latest=latest.id,
    )
