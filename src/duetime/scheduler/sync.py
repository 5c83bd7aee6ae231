"""The client verbs for callers without an event loop: each one runs its async verb to the end, in a loop elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack

from duetime.locks.base import DEFAULT_TTL, BlockingLock, DistributedLock
from duetime.model.task import JobOptionValues
from duetime.model.time import Duration
from duetime.scheduler.announced import AnnouncedTasks
from duetime.scheduler.audit import Audit
from duetime.scheduler.job_handle import BlockingHandle, JobHandle
from duetime.scheduler.jobs import Jobs, Pruning
from duetime.scheduler.processes.portal import BlockingPortal
from duetime.scheduler.queues import Queues
from duetime.scheduler.schedules import Schedules
from duetime.scheduler.stats import Stats
from duetime.scheduler.task import Calls, EnqueueClient
from duetime.scheduler.tokens import Tokens
from duetime.scheduler.workers import Workers

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")


class BlockingVerbs(Generic[V]):
    """An object with async verbs, for callers without an event loop."""

    def __init__(self, verbs: V, portal: BlockingPortal) -> None:
        self._verbs = verbs
        self._portal = portal


def blocking(
    verb: Callable[Concatenate[V, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[BlockingVerbs[V], P], R]:
    """Return an async verb as a blocking one with the same parameters."""

    @functools.wraps(verb)
    def run(own: BlockingVerbs[V], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return own._portal.run(verb(own._verbs, *args, **kwargs))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    return run


def blocking_enqueue(
    verb: Callable[Concatenate[V, P], Coroutine[Any, Any, JobHandle[R]]],
) -> Callable[Concatenate[BlockingVerbs[V], P], BlockingHandle[R]]:
    """Return an async verb that enqueues a job as a blocking one."""
    run = blocking(verb)

    @functools.wraps(verb)
    def enqueue(own: BlockingVerbs[V], /, *args: P.args, **kwargs: P.kwargs) -> BlockingHandle[R]:
        return BlockingHandle(run(own, *args, **kwargs), own._portal)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    return enqueue


class BlockingJobs(BlockingVerbs[Jobs]):
    """Reads, cancels, changes, reruns and deletes jobs."""

    get = blocking(Jobs.get)
    list = blocking(Jobs.list)
    failures = blocking(Jobs.failures)
    attempts = blocking(Jobs.attempts)
    cancel = blocking(Jobs.cancel)
    cancel_many = blocking(Jobs.cancel_many)
    upcoming = blocking(Jobs.upcoming)
    explain = blocking(Jobs.explain)
    logs = blocking(Jobs.logs)
    snooze = blocking(Jobs.snooze)
    edit = blocking(Jobs.edit)
    release = blocking(Jobs.release)
    delete = blocking(Jobs.delete)
    delete_many = blocking(Jobs.delete_many)
    rerun = blocking_enqueue(Jobs.rerun)


class BlockingSchedules(BlockingVerbs[Schedules]):
    """Reads and changes schedules."""

    list = blocking(Schedules.list)
    get = blocking(Schedules.get)
    put = blocking(Schedules.put)
    edit = blocking(Schedules.edit)
    pause = blocking(Schedules.pause)
    resume = blocking(Schedules.resume)
    delete = blocking(Schedules.delete)
    skip = blocking(Schedules.skip)
    preview = blocking(Schedules.preview)
    backfill = blocking(Schedules.backfill)
    history = blocking(Schedules.history)
    forecast = blocking(Schedules.forecast)
    calendar = blocking(Schedules.calendar)
    overdue = blocking(Schedules.overdue)
    explain = blocking(Schedules.explain)
    export = blocking(Schedules.export)
    import_ = blocking(Schedules.import_)
    trigger = blocking_enqueue(Schedules.trigger)


class BlockingQueues(BlockingVerbs[Queues]):
    """Pauses, resumes, limits, counts and empties queues."""

    pause = blocking(Queues.pause)
    resume = blocking(Queues.resume)
    purge = blocking(Queues.purge)
    paused = blocking(Queues.paused)
    limit = blocking(Queues.limit)
    limits = blocking(Queues.limits)
    counts = blocking(Queues.counts)
    get = blocking(Queues.get)
    list = blocking(Queues.list)


class BlockingWorkers(BlockingVerbs[Workers]):
    """Reads workers and tells them what to do."""

    get = blocking(Workers.get)
    list = blocking(Workers.list)
    commands = blocking(Workers.commands)
    explain = blocking(Workers.explain)
    pause = blocking(Workers.pause)
    resume = blocking(Workers.resume)
    stop = blocking(Workers.stop)
    stop_job = blocking(Workers.stop_job)
    stacks = blocking(Workers.stacks)


class BlockingAnnouncedTasks(BlockingVerbs[AnnouncedTasks]):
    """Reads the tasks that workers have announced."""

    list = blocking(AnnouncedTasks.list)
    get = blocking(AnnouncedTasks.get)


class BlockingAudit(BlockingVerbs[Audit]):
    """Tells who did what."""

    list = blocking(Audit.list)


class BlockingStats(BlockingVerbs[Stats]):
    """Tells how tasks, queues and schedules have fared over time."""

    tasks = blocking(Stats.tasks)
    queues = blocking(Stats.queues)
    schedules = blocking(Stats.schedules)
    new_failures = blocking(Stats.new_failures)


class BlockingTokens(BlockingVerbs[Tokens]):
    """The verbs of `scheduler.sync.tokens`."""

    add = blocking(Tokens.add)
    list = blocking(Tokens.list)
    revoke = blocking(Tokens.revoke)


class BlockingPruning(BlockingVerbs[Pruning]):
    """The verb `scheduler.sync.prune`."""

    __call__ = blocking(Pruning.__call__)


class BlockingScheduler:
    """The scheduler's client verbs for callers without an event loop."""

    def __init__(
        self,
        client: EnqueueClient,
        *,
        jobs: Jobs,
        schedules: Schedules,
        queues: Queues,
        workers: Workers,
        announced: AnnouncedTasks,
        audit: Audit,
        stats: Stats,
        tokens: Tokens,
        prune: Pruning,
        lock: Callable[..., DistributedLock],
    ) -> None:
        self._client = client
        self._portal = portal = client.portal
        self.jobs = BlockingJobs(jobs, portal)
        self.schedules = BlockingSchedules(schedules, portal)
        self.queues = BlockingQueues(queues, portal)
        self.workers = BlockingWorkers(workers, portal)
        self.announced = BlockingAnnouncedTasks(announced, portal)
        self.audit = BlockingAudit(audit, portal)
        self.stats = BlockingStats(stats, portal)
        self.tokens = BlockingTokens(tokens, portal)
        self.prune = BlockingPruning(prune, portal)
        self._lock = lock

    def enqueue_many(self, calls: Calls, *, tx: object | None = None) -> list[BlockingHandle[Any]]:
        """Store all requests or none; with `tx`, in that transaction and in this thread."""
        handles = self._client.enqueue_many_blocking(calls, tx=tx)
        return [BlockingHandle(handle, self._portal) for handle in handles]

    def enqueue_by_name(
        self, task: str, arguments: Mapping[str, object] | None = None, /, **values: Unpack[JobOptionValues]
    ) -> BlockingHandle[Any]:
        """Store a job of a task that is registered here or that workers have announced; raises `UnknownTask`."""
        handle = self._portal.run(self._client.enqueue_by_name(task, arguments, **values))
        return BlockingHandle(handle, self._portal)

    def lock(
        self, name: str, *, ttl: Duration = DEFAULT_TTL, timeout: Duration | None = None
    ) -> BlockingLock:
        """Return a lock for `with`; a loss is told by its `lost` event."""
        return self._lock(name, ttl=ttl, timeout=timeout).sync

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run your coroutine in the loop where the scheduler is open, and return its result."""
        return self._portal.run(coroutine)

    def close(self) -> None:
        """Close the connection that blocking calls opened."""
        self._portal.close()
