"""What is new about jobs since the last look."""

from __future__ import annotations

from typing import Final, NamedTuple

from duetime.model.instants import Instant
from duetime.model.job import JobId
from duetime.model.reports import LogPart
from duetime.model.states import State
from duetime.model.stored import StoredJob
from duetime.scheduler.lookup import find_job
from duetime.stores.base import JobFilter, Store

_PAGE: Final = 500
"""How many jobs that run, and how many of the newest ones, one look takes in."""


class Mark(NamedTuple):
    """What tells one stage in the life of a job from the next."""

    state: State
    run: int


class News(NamedTuple):
    """What one look at a job has found."""

    job: StoredJob
    moved: bool
    """Whether it has come to another stage."""
    progressed: bool
    logs: list[LogPart]


class Follower:
    """Looks at one job."""

    def __init__(self, store: Store, job_id: JobId) -> None:
        self._store = store
        self._job_id = job_id
        self._before: StoredJob | None = None
        self._read = (0, 0)

    async def look(self) -> News:
        """Tell what is new; raises `JobNotFound`."""
        job = await find_job(self._store, self._job_id)
        # Read after the job: the last lines are written together with its end.
        logs = await self._store.logs(self._job_id, after=self._read)
        if logs:
            self._read = logs[-1].fence, logs[-1].line
        before, self._before = self._before, job
        told = None if before is None else (before.progress, before.progress_note)
        return News(
            job,
            moved=before is None or mark(before) != mark(job),
            progressed=job.progress is not None and (job.progress, job.progress_note) != told,
            logs=logs,
        )


class Latest:
    """Looks at the jobs that run, and at the newest ones."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._marks: dict[JobId, Mark] = {}
        self._since: Instant | None = None

    async def look(self) -> list[StoredJob]:
        """Return the jobs that have started, gone back or ended since the last look, the latest last.

        The first look finds what runs.
        """
        if self._since is None:
            self._since = await self._store.now()
        running = await self._store.find(JobFilter(state=State.RUNNING, limit=_PAGE))
        newest = await self._store.find(JobFilter(limit=_PAGE))
        jobs = {job.id: job for job in (*newest, *running)}
        ran = [job_id for job_id, before in self._marks.items() if before.state is State.RUNNING]
        jobs |= {job.id: job for job in await self._store.get([i for i in ran if i not in jobs])}
        changed = [job for job in jobs.values() if self._is_news(job, self._since)]
        self._marks = {job.id: mark(job) for job in jobs.values()}
        return sorted(changed, key=lambda job: (moment(job), job.id))

    def _is_news(self, job: StoredJob, since: Instant) -> bool:
        now, before = mark(job), self._marks.get(job.id)
        if now == before:
            return False
        match now.state:
            case State.RUNNING:
                return True
            case State.PENDING:
                return before is not None and before.state is State.RUNNING
            case _:
                return moment(job) >= since


def mark(job: StoredJob) -> Mark:
    """Return the stage a job is at; one that is held for its due time still waits."""
    if job.state is State.RUNNING and job.started_at is None:
        return Mark(State.PENDING, job.attempt)
    return Mark(job.state, job.fence if job.state is State.RUNNING else job.attempt)


def moment(job: StoredJob) -> Instant:
    """Return when a job came to where it is: its end, else its start, else its due time."""
    return job.finished_at or job.started_at or job.due_at
