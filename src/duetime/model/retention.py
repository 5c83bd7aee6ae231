"""How long ended jobs are kept, and their results and errors apart from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from duetime.model.job import FOREVER, JobId
from duetime.model.states import State
from duetime.model.text import check_whole
from duetime.model.time import DAY, Instant, Micros, describe_duration

if TYPE_CHECKING:
    from duetime.model.stored.jobs import StoredJob

DEFAULT_RETENTION: Final = 30 * DAY
DEFAULT_KEEP_PER_SCHEDULE: Final = 10
_MOST_PER_SCHEDULE: Final = 10_000


class Remains(NamedTuple):
    """What decides how long an ended job stays."""

    id: JobId
    state: State
    finished_at: Instant
    result_ttl: Micros | None
    failure_ttl: Micros | None
    keep_key: Micros | None
    key_until: Instant | None
    schedule: str | None
    occurrence: Instant | None
    has_more: bool
    """Whether its result or its error is still there."""

    @property
    def ttl(self) -> Micros | None:
        """How long after the end its result or its error is to be there."""
        return _ttl(self.state, self.result_ttl, self.failure_ttl)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which records may be deleted."""

    before: Instant | None
    """Records of jobs that ended before this; `None` keeps them all."""
    keep_per_schedule: int = 0
    """How many of the latest occurrences of each schedule stay in any case."""

    def covers(self, job: Remains, *, now: Instant) -> bool:
        """Whether a job is old enough to be deleted, and neither its terms nor its key keep it."""
        if self.before is None or job.finished_at >= self.before or job.ttl == FOREVER:
            return False
        return max(job.finished_at + max(job.ttl or 0, job.keep_key or 0), job.key_until or 0) <= now


def is_latest(job: Remains, firsts: Mapping[str, Instant | None]) -> bool:
    """Whether a job is among the latest of its schedule; `firsts` has the first that stays of each, `None` where all do."""
    if job.schedule is None or job.schedule not in firsts or job.occurrence is None:
        return False
    first = firsts[job.schedule]
    return first is None or job.occurrence >= first


def is_over(finished_at: Instant, ttl: Micros | None, *, now: Instant) -> bool:
    """Whether something has been kept for its time to live."""
    return ttl is not None and ttl != FOREVER and finished_at + ttl <= now


def outlived(ended: Iterable[Remains], *, going: Collection[JobId], now: Instant) -> list[Remains]:
    """Return the jobs that stay, but whose results and errors have outlived their own time to live."""
    staying = (job for job in ended if job.has_more and job.id not in going)
    return [job for job in staying if is_over(job.finished_at, job.ttl, now=now)]


def note_on(state: State, ttl: Micros | None) -> str | None:
    """Say why a job that succeeded has no result; for a job that failed its state says enough."""
    if state is not State.SUCCEEDED or ttl is None:
        return None
    return "its result is not kept" if ttl == 0 else f"its result was kept for {describe_duration(ttl)} only"


def as_of(job: StoredJob, now: Instant) -> StoredJob:
    """Return a job without a result or error past its time to live, even if the store still has it."""
    ttl = _ttl(job.state, job.result_ttl, job.failure_ttl)
    if job.finished_at is None or not is_over(job.finished_at, ttl, now=now):
        return job
    if job.state is State.FAILED:
        return replace(job, error=None, traceback=None)
    if job.result is None:
        return job
    return replace(job, result=None, result_error=note_on(job.state, ttl))


def check_keep_per_schedule(number: int) -> int:
    """Return the number, or raise `InvalidOption`."""
    return check_whole(number, 0, _MOST_PER_SCHEDULE, what="keep_per_schedule")


def _ttl(state: State, result_ttl: Micros | None, failure_ttl: Micros | None) -> Micros | None:
    if state is State.SUCCEEDED:
        return result_ttl
    return failure_ttl if state is State.FAILED else None
