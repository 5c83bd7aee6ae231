"""The client verbs for callers without an event loop; each one is its async twin, run to the end."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

from duetime.model.durations import Duration
from duetime.model.job import JobId
from duetime.model.limit import Limit, Rate
from duetime.model.reports import LogPart
from duetime.model.retention import DEFAULT_KEEP_PER_SCHEDULE
from duetime.model.states import State
from duetime.model.task import JobOptionValues
from duetime.scheduler.blocking_handle import BlockingHandle
from duetime.scheduler.blocking_schedules import BlockingSchedules
from duetime.scheduler.blocking_workers import BlockingWorkers
from duetime.scheduler.explaining import Explanation
from duetime.scheduler.jobs import ON_REQUEST, Jobs
from duetime.scheduler.pages import JobQuery, Page
from duetime.scheduler.portal import Portal
from duetime.scheduler.pruning import Pruning
from duetime.scheduler.queues import PURGED, Queues
from duetime.scheduler.records import AttemptRecord, JobRecord, QueueRecord
from duetime.scheduler.schedules import Schedules
from duetime.scheduler.task import Call, Client, Request
from duetime.scheduler.workers import Workers
from duetime.stores.base import CancelAnswer, ReleaseAnswer

P = ParamSpec("P")
R = TypeVar("R")


class BlockingRequest(Generic[P, R]):
    """A task, perhaps with options, for blocking callers."""

    __slots__ = ("_client", "_portal", "_request")

    def __init__(self, request: Request[P, R], client: Client, portal: Portal) -> None:
        self._request = request
        self._client = client
        self._portal = portal

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> BlockingHandle[R]:
        """Store a job that calls the task with these arguments; once this returns, the job is not lost."""
        request = self._request
        handle = self._client.enqueue_blocking(request.prepared(args, kwargs), tx=request.tx)
        return BlockingHandle(handle, self._portal)


class BlockingJobs:
    """Reads jobs, and changes what becomes of them."""

    def __init__(self, jobs: Jobs, portal: Portal) -> None:
        self._jobs = jobs
        self._portal = portal

    def get(self, job_id: JobId) -> JobRecord:
        """Return one job; raises `JobNotFound`."""
        return self._portal.run(self._jobs.get(job_id))

    def list(self, **query: Unpack[JobQuery]) -> Page[JobRecord]:
        """Return one page of jobs, newest first; pass its `cursor` for the next one."""
        return self._portal.run(self._jobs.list(**query))

    def attempts(self, job_id: JobId) -> Sequence[AttemptRecord]:
        """Return the tries of a job; see `Jobs.attempts`."""
        return self._portal.run(self._jobs.attempts(job_id))

    def cancel(self, job_id: JobId, *, reason: str = ON_REQUEST) -> CancelAnswer:
        """Cancel a job; see `Jobs.cancel`."""
        return self._portal.run(self._jobs.cancel(job_id, reason=reason))

    def cancel_many(
        self, job_ids: Iterable[JobId], *, reason: str = ON_REQUEST
    ) -> Mapping[JobId, CancelAnswer]:
        """Cancel jobs in one step and tell what became of each."""
        return self._portal.run(self._jobs.cancel_many(job_ids, reason=reason))

    def upcoming(self, *, limit: int = 10) -> Sequence[JobRecord]:
        """Return the pending jobs that fall due first."""
        return self._portal.run(self._jobs.upcoming(limit=limit))

    def explain(self, job_id: JobId) -> Explanation:
        """Tell what happened to a job, and what it waits for; see `Jobs.explain`."""
        return self._portal.run(self._jobs.explain(job_id))

    def logs(self, job_id: JobId) -> Sequence[LogPart]:
        """Return what a job has logged; see `Jobs.logs`."""
        return self._portal.run(self._jobs.logs(job_id))

    def rerun(self, job_id: JobId, **values: Unpack[JobOptionValues]) -> BlockingHandle[Any]:
        """Enqueue a job like one that has ended; see `Jobs.rerun`."""
        return BlockingHandle(self._portal.run(self._jobs.rerun(job_id, **values)), self._portal)

    def snooze(self, job_id: JobId, delay: Duration) -> None:
        """Put a job off; see `Jobs.snooze`."""
        self._portal.run(self._jobs.snooze(job_id, delay))

    def release(self, job_id: JobId, *, force: bool = False) -> ReleaseAnswer:
        """Have a worker give a job back; see `Jobs.release`."""
        return self._portal.run(self._jobs.release(job_id, force=force))


class BlockingQueues:
    """Pauses, resumes, limits, counts and empties queues."""

    def __init__(self, queues: Queues, portal: Portal) -> None:
        self._queues = queues
        self._portal = portal

    def pause(self, queue: str, *, reason: str | None = None) -> None:
        """Hand out nothing more from a queue."""
        self._portal.run(self._queues.pause(queue, reason=reason))

    def resume(self, queue: str) -> None:
        """Hand out jobs of a queue again."""
        self._portal.run(self._queues.resume(queue))

    def purge(self, queue: str, *, confirm: str, reason: str = PURGED) -> int:
        """Cancel all jobs of a queue that no worker has yet, and return how many."""
        return self._portal.run(self._queues.purge(queue, confirm=confirm, reason=reason))

    def paused(self) -> Mapping[str, str | None]:
        """Return the paused queues with their reasons."""
        return self._portal.run(self._queues.paused())

    def limit(self, queue: str, most: int | Limit | None = None, *, rate: str | Rate | None = None) -> None:
        """Limit a queue over all workers; see `Queues.limit`."""
        self._portal.run(self._queues.limit(queue, most, rate=rate))

    def limits(self) -> Mapping[str, tuple[Limit | None, Rate | None]]:
        """Return the limited queues, each with its limit and its rate."""
        return self._portal.run(self._queues.limits())

    def counts(self) -> Mapping[tuple[str, State], int]:
        """Return how many jobs each queue has in each state."""
        return self._portal.run(self._queues.counts())

    def list(self) -> list[QueueRecord]:
        """Return all queues by name, with what is in them."""
        return self._portal.run(self._queues.list())


class BlockingScheduler:
    """The scheduler's client verbs for callers without an event loop."""

    def __init__(
        self,
        *,
        client: Client,
        jobs: Jobs,
        schedules: Schedules,
        queues: Queues,
        workers: Workers,
        prune: Pruning,
        portal: Portal,
    ) -> None:
        self.jobs = BlockingJobs(jobs, portal)
        self.schedules = BlockingSchedules(schedules, portal)
        self.queues = BlockingQueues(queues, portal)
        self.workers = BlockingWorkers(workers, portal)
        self._client = client
        self._prune = prune
        self._portal = portal

    def prune(
        self,
        *,
        older_than: Duration = "30d",
        keep_per_schedule: int = DEFAULT_KEEP_PER_SCHEDULE,
        dry_run: bool = False,
    ) -> int:
        """Remove the records of old jobs; see `Scheduler.prune`."""
        return self._portal.run(
            self._prune(older_than=older_than, keep_per_schedule=keep_per_schedule, dry_run=dry_run)
        )

    def enqueue_many(
        self, calls: Iterable[Call[Any]], *, tx: object | None = None
    ) -> list[BlockingHandle[Any]]:
        """Store all requests or none; with `tx`, in that transaction and in this thread."""
        handles = self._client.enqueue_many_blocking(calls, tx=tx)
        return [BlockingHandle(handle, self._portal) for handle in handles]

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine of yours where the scheduler is open, and return its result."""
        return self._portal.run(coroutine)

    def close(self) -> None:
        """Let go of the connection that blocking calls opened."""
        self._portal.close()
