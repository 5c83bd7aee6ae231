"""The client verbs for callers without an event loop; each one is its async twin, run to the end."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, ParamSpec, TypeVar, Unpack

from duetime.model.job import JobId
from duetime.model.limits import Limit, Rate
from duetime.model.reports import LogPart
from duetime.model.retention import DEFAULT_KEEP_PER_SCHEDULE
from duetime.model.schedule.options import ScheduleOptionValues
from duetime.model.states import State
from duetime.model.task import JobOptionValues
from duetime.model.time import Duration
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.preview import Upcoming
from duetime.model.worker import WorkerId
from duetime.scheduler.explanations import Explanation, ScheduleExplanation
from duetime.scheduler.forecast import Forecast
from duetime.scheduler.job_class import Job
from duetime.scheduler.job_handle import JobHandle
from duetime.scheduler.jobs import ON_REQUEST, JobQuery, Jobs, Page, Pruning
from duetime.scheduler.portal import BlockingPortal
from duetime.scheduler.queues import PURGED, Queues
from duetime.scheduler.records import AttemptRecord, CommandRecord, JobRecord, QueueRecord, WorkerRecord
from duetime.scheduler.schedule_changes import ChangeAnswer
from duetime.scheduler.schedule_files import ScheduleExport, ScheduleImport
from duetime.scheduler.schedule_records import Backfill, ScheduleChange, ScheduleRecord
from duetime.scheduler.schedules import Schedules
from duetime.scheduler.task import Call, EnqueueClient, Request, Task
from duetime.scheduler.workers import DEFAULT_WAIT, Workers
from duetime.stores.base import CancelAnswer, ReleaseAnswer

R = TypeVar("R")


class BlockingHandle(Generic[R]):
    """A job that was just enqueued."""

    __slots__ = ("_handle", "_portal")

    def __init__(self, handle: JobHandle[R], portal: BlockingPortal) -> None:
        self._handle = handle
        self._portal = portal

    def __repr__(self) -> str:
        return f"<BlockingHandle {self._handle.task} {self.id}>"

    @property
    def id(self) -> JobId:
        """The job's id."""
        return self._handle.id

    @property
    def existing(self) -> bool:
        """Whether a job that was there before, under the same key, serves the request."""
        return self._handle.existing

    def record(self) -> JobRecord:
        """Return the job as it stands; raises `JobNotFound`."""
        return self._portal.run(self._handle.record())

    def result(self, *, timeout: float | None = None) -> R:
        """Wait until the job has ended and return what it returned; raises as `JobHandle.result` does."""
        return self._portal.run(self._handle.result(timeout=timeout))


class BlockingSchedules:
    """Reads schedules, and changes what becomes of them."""

    def __init__(self, schedules: Schedules, portal: BlockingPortal) -> None:
        self._schedules = schedules
        self._portal = portal

    def list(self) -> list[ScheduleRecord]:
        """Return all schedules by name."""
        return self._portal.run(self._schedules.list())

    def get(self, name: str) -> ScheduleRecord:
        """Return one schedule; raises `ScheduleNotFound`."""
        return self._portal.run(self._schedules.get(name))

    def put(
        self,
        name: str,
        trigger: Trigger,
        task: Task[..., Any] | type[Job] | str,
        *,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
        **values: Unpack[ScheduleOptionValues],
    ) -> ChangeAnswer:
        """Store a schedule, or change what differs in the one of this name; see `Schedules.put`."""
        asked = self._schedules.put(name, trigger, task, args=args, kwargs=kwargs, by=by, **values)
        return self._portal.run(asked)

    def edit(
        self,
        name: str,
        *,
        trigger: Trigger | None = None,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
        **values: Unpack[ScheduleOptionValues],
    ) -> Literal["changed", "unchanged"]:
        """Change what is given and nothing else; see `Schedules.edit`."""
        asked = self._schedules.edit(name, trigger=trigger, args=args, kwargs=kwargs, by=by, **values)
        return self._portal.run(asked)

    def pause(
        self,
        name: str,
        *,
        reason: str | None = None,
        until: datetime | Duration | None = None,
        by: str | None = None,
    ) -> None:
        """Stop a schedule from firing; see `Schedules.pause`."""
        self._portal.run(self._schedules.pause(name, reason=reason, until=until, by=by))

    def resume(self, name: str, *, by: str | None = None) -> Literal["resumed", "unchanged"]:
        """Let a schedule fire again, from now on."""
        return self._portal.run(self._schedules.resume(name, by=by))

    def delete(self, name: str, *, by: str | None = None) -> None:
        """Remove a schedule; see `Schedules.delete`."""
        self._portal.run(self._schedules.delete(name, by=by))

    def trigger(
        self,
        name: str,
        *,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
    ) -> BlockingHandle[Any]:
        """Store a job of a schedule now; see `Schedules.trigger`."""
        asked = self._schedules.trigger(name, args=args, kwargs=kwargs, by=by)
        return BlockingHandle(self._portal.run(asked), self._portal)

    def skip(self, name: str, *, by: str | None = None) -> datetime:
        """Have the next occurrence not run; see `Schedules.skip`."""
        return self._portal.run(self._schedules.skip(name, by=by))

    def preview(self, name: str, n: int = 10, *, after: datetime | None = None) -> Sequence[Upcoming]:
        """Return the next occurrences, with notes; see `Schedules.preview`."""
        return self._portal.run(self._schedules.preview(name, n, after=after))

    def backfill(
        self, name: str, start: datetime, end: datetime, *, dry_run: bool = False, by: str | None = None
    ) -> Backfill:
        """Store a job for each occurrence that has none; see `Schedules.backfill`."""
        return self._portal.run(self._schedules.backfill(name, start, end, dry_run=dry_run, by=by))

    def history(self, name: str, *, limit: int = 50) -> Sequence[ScheduleChange]:
        """Return what was done to a schedule and by whom; see `Schedules.history`."""
        return self._portal.run(self._schedules.history(name, limit=limit))

    def forecast(self, *, days: int = 7, tz: str = "UTC") -> Forecast:
        """Tell the load to come; see `Schedules.forecast`."""
        return self._portal.run(self._schedules.forecast(days=days, tz=tz))

    def explain(self, name: str, at: datetime | None = None) -> ScheduleExplanation:
        """Tell how a schedule stands, or what became of it at some time; see `Schedules.explain`."""
        return self._portal.run(self._schedules.explain(name, at=at))

    def export(
        self,
        names: Sequence[str] | None = None,
        *,
        format: str = "json",  # noqa: A002 - the word that everybody uses
    ) -> ScheduleExport:
        """Return schedules as the text of a file; see `Schedules.export`."""
        return self._portal.run(self._schedules.export(names, format=format))

    def import_(
        self,
        text: str,
        *,
        format: str = "json",  # noqa: A002 - the word that everybody uses
        check: bool = True,
        dry_run: bool = False,
        source: str = "text",
        by: str | None = None,
    ) -> ScheduleImport:
        """Store the schedules of a file, all of them or none; see `Schedules.import_`."""
        asked = self._schedules.import_(
            text, format=format, check=check, dry_run=dry_run, source=source, by=by
        )
        return self._portal.run(asked)


class BlockingWorkers:
    """Reads workers and tells them what to do."""

    def __init__(self, workers: Workers, portal: BlockingPortal) -> None:
        self._workers = workers
        self._portal = portal

    def get(self, worker_id: WorkerId) -> WorkerRecord:
        """Return one worker; raises `WorkerNotFound`."""
        return self._portal.run(self._workers.get(worker_id))

    def commands(self, worker_id: WorkerId, *, limit: int = 20) -> list[CommandRecord]:
        """Return what a worker was told last and what came of it, newest first."""
        return self._portal.run(self._workers.commands(worker_id, limit=limit))

    def pause(
        self, worker_id: WorkerId, *, reason: str | None = None, wait: Duration = DEFAULT_WAIT
    ) -> str | None:
        """Have a worker start nothing more."""
        return self._portal.run(self._workers.pause(worker_id, reason=reason, wait=wait))

    def resume(self, worker_id: WorkerId, *, wait: Duration = DEFAULT_WAIT) -> str | None:
        """Have a paused worker start jobs again."""
        return self._portal.run(self._workers.resume(worker_id, wait=wait))

    def stop(
        self,
        worker_id: WorkerId,
        *,
        now: bool = False,
        reason: str | None = None,
        wait: Duration = DEFAULT_WAIT,
    ) -> str | None:
        """Have a worker stop as after a signal."""
        return self._portal.run(self._workers.stop(worker_id, now=now, reason=reason, wait=wait))

    def stop_job(
        self,
        worker_id: WorkerId,
        job_id: JobId,
        *,
        reason: str | None = None,
        wait: Duration = DEFAULT_WAIT,
    ) -> str | None:
        """Have a worker cancel one job that it runs."""
        return self._portal.run(self._workers.stop_job(worker_id, job_id, reason=reason, wait=wait))

    def stacks(self, worker_id: WorkerId, *, wait: Duration = DEFAULT_WAIT) -> str:
        """Return where all threads and tasks of a worker stand."""
        return self._portal.run(self._workers.stacks(worker_id, wait=wait))

    def list(self) -> list[WorkerRecord]:
        """Return all workers that are known, newest first."""
        return self._portal.run(self._workers.list())


P = ParamSpec("P")


class BlockingRequest(Generic[P, R]):
    """A task, perhaps with options, for blocking callers."""

    __slots__ = ("_client", "_portal", "_request")

    def __init__(self, request: Request[P, R], client: EnqueueClient, portal: BlockingPortal) -> None:
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

    def __init__(self, jobs: Jobs, portal: BlockingPortal) -> None:
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

    def __init__(self, queues: Queues, portal: BlockingPortal) -> None:
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
        client: EnqueueClient,
        jobs: Jobs,
        schedules: Schedules,
        queues: Queues,
        workers: Workers,
        prune: Pruning,
        portal: BlockingPortal,
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
