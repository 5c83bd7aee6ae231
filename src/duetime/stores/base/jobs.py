"""What all stores do alike with jobs: whom they hint of them, whom they blame, how they tell of keys, and refuse to lend."""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NoReturn

from duetime.errors import KeyTaken, TransactionMisused, Unsupported
from duetime.model.job import Claim, JobId, Key, KeyHolder, NewJob
from duetime.model.outcome import CrashSuspect, Settlement, blamed_job, decide, leaves_work, recalled
from duetime.model.retry import NO_RETRIES
from duetime.model.states import State
from duetime.model.time import Instant
from duetime.stores.base.values import ArgumentsMismatch, Hint, JobPage

_log = logging.getLogger("duetime.store")


def read_progress(fraction: float | str | None) -> float | None:
    """Round what a database has kept in four bytes, or with too many digits."""
    return None if fraction is None else round(float(fraction), 6)


def job_hints(jobs: Iterable[NewJob]) -> list[Hint]:
    """Return the hints for new jobs that are due."""
    pending = [job for job in jobs if job.state is State.PENDING]
    hints = [Hint("jobs")] if pending else []
    # Workers that know a task expect its limited jobs; those of a schedule come unexpected.
    if any(job.schedule is not None and job.terms.gate is not None for job in pending):
        hints.append(Hint("limits"))
    return hints


def settled_hints(settlements: Sequence[Settlement]) -> list[Hint]:
    """Return the hints for runs that have ended."""
    if any(map(leaves_work, settlements)):
        return [Hint("jobs")]
    return [Hint("limits")] if any(change.limited for change in settlements) else []


def given_back(claim: Claim, started_at: Instant | None) -> Settlement:
    """Decide what becomes of a job that was taken away from its worker; `claim` is the one that took it."""
    outcome = recalled(started=started_at is not None)
    now, rng = claim.claimed_at, random.Random()
    return decide(claim, outcome, policy=NO_RETRIES, started_at=started_at, now=now, rng=rng)


def blamed_jobs(suspects: Iterable[tuple[str, CrashSuspect]]) -> frozenset[JobId]:
    """Return the job that is to blame in each dead worker, given workers with the jobs that they had started."""
    by_worker: defaultdict[str, list[CrashSuspect]] = defaultdict(list)
    for worker, suspect in suspects:
        by_worker[worker].append(suspect)
    return frozenset(job_id for group in by_worker.values() if (job_id := blamed_job(group)) is not None)


def key_taken(job: NewJob, key: Key, holder: KeyHolder) -> KeyTaken:
    """Return the error for a request that insists on its own job."""
    return KeyTaken(
        f"{job.task} has the job {holder.id} ({holder.state}) under the key {key.value!r} already",
        key=key.value,
        job_id=holder.id,
    )


def warn_of_mismatches(mismatches: Iterable[ArgumentsMismatch]) -> None:
    """Log which requests are not stored as they were made."""
    text = "%s was enqueued under the key %r with other arguments than those of job %s, which stand"
    for job, served_by in mismatches:
        _log.warning(text, job.task, job.key and job.key.value, served_by)


def merged_jobs(pages: Sequence[JobPage], *, limit: int) -> JobPage:
    """Return one page of several, as far as all of them have looked."""
    if len(pages) == 1:
        return pages[0]
    looked_to = max((page.looked_to for page in pages if page.looked_to is not None), default=None)
    found = sorted(chain(*pages), key=lambda job: job.id, reverse=True)
    if looked_to is not None:
        found = [job for job in found if job.id >= looked_to]
    return JobPage(found[:limit], looked_to=looked_to if len(found) < limit else None)


class NoTransaction:
    """A transaction for a handler that cannot begin."""

    blocking = False
    expired = False

    def __init__(self, why: str) -> None:
        self._why = why

    def keeps_out(self, store: object) -> bool:  # noqa: ARG002 - there is no transaction
        """Never: there is none."""
        return False

    async def begin(self) -> NoReturn:
        """Refuse."""
        raise Unsupported(self._why)

    async def complete(self, settlement: Settlement) -> NoReturn:  # noqa: ARG002 - refused
        """Refuse: it has not begun."""
        raise TransactionMisused("there is no transaction to commit")

    async def abandon(self, error: BaseException) -> NoReturn:
        """Refuse: it has not begun."""
        raise TransactionMisused("there is no transaction to roll back") from error
