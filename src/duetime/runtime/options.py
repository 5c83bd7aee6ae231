"""The settings of a worker, checked before anything starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from duetime.errors import ConfigError
from duetime.model.job import DEFAULT_QUEUE
from duetime.model.retention import DEFAULT_KEEP_PER_SCHEDULE, DEFAULT_RETENTION, check_keep_per_schedule
from duetime.model.text import Size, check_name, counted, parse_size, shown
from duetime.model.time import MILLISECOND, SECOND, Duration, Micros, describe_duration, parse_duration

QueueLimits: TypeAlias = Sequence[str] | Mapping[str, int | None]

MAX_CONCURRENCY = 10_000
MAX_CHILDREN = 1_000
_MIN_LEASE: Micros = 300 * MILLISECOND


def usable_cores() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker works."""

    concurrency: int = 100
    queues: Mapping[str, int | None] = field(default_factory=lambda: {DEFAULT_QUEUE: None})
    """Each queue with the most jobs of it to run at once, or `None` for as many as there are slots."""
    named_queues: bool = True
    """Whether it works on every other queue that its tasks and schedules name, too."""
    schedules: bool = True
    """Whether this worker declares and fires schedules."""
    jobs: bool = True
    """Whether it runs jobs."""
    grace: Micros = 30 * SECOND
    """How long running jobs may go on when the worker is asked to stop."""
    lease: Micros = 30 * SECOND
    """How long jobs stay the worker's if it falls silent; a heartbeat comes every third of it."""
    window: Micros = 500 * MILLISECOND
    """How far ahead of their due time jobs are claimed."""
    retention: Micros | None = DEFAULT_RETENTION
    """How long ended jobs are kept."""
    keep_per_schedule: int = DEFAULT_KEEP_PER_SCHEDULE
    """How many of the latest jobs of each schedule are kept in any case."""
    capture_logs: bool = True
    """Whether what jobs log is kept with them."""
    cpu_children: int = field(default_factory=usable_cores)
    """How many jobs may run at once in child processes."""
    cpu_max_jobs: int | None = None
    """After how many jobs a child is replaced."""
    cpu_max_memory: int | None = None
    """With how many bytes in memory, after a job, a child is replaced."""
    name: str | None = None
    """What it is called in lists and to the liveness check; several may share a name."""
    burst: bool = False
    """Whether it ends once nothing is due any more."""
    max_jobs: int | None = None
    """After how many runs it ends."""
    dedicated: bool = False
    """Whether the process is the worker's own, so that it may end it when its loop hangs, and tell the garbage collector
    what to leave out."""

    def with_queues(self, named: Iterable[str]) -> WorkerOptions:
        """Return the options with the queues that tasks and schedules name, unless queues were chosen."""
        return replace(self, queues=dict.fromkeys([*self.queues, *named])) if self.named_queues else self

    def describe(self, *, tasks: int, declared: int) -> str:
        """Say what the worker serves, for its log."""
        queues = (name if most is None else f"{name}={most}" for name, most in self.queues.items())
        slots = f"{counted(self.concurrency, 'slot')}, queues {', '.join(queues)}, {counted(tasks, 'task')}"
        schedules = f"fires schedules and declares {declared}" if self.schedules else "fires no schedules"
        until = "until nothing is due, " if self.burst else ""
        if self.max_jobs is not None:
            until += f"until {counted(self.max_jobs, 'job')} {'has' if self.max_jobs == 1 else 'have'} run, "
        name = f"called {self.name}, " if self.name else ""
        return f"{name}{until}{slots if self.jobs else 'runs no jobs'}, {schedules}"


def worker_options(
    *,
    concurrency: int = 100,
    queues: QueueLimits | None = None,
    schedules: bool = True,
    jobs: bool = True,
    grace: Duration = 30,
    lease: Duration = 30,
    window: Duration = 0.5,
    retention: Duration | None = "30d",
    capture_logs: bool = True,
    cpu_children: int | None = None,
    cpu_max_jobs: int | None = None,
    cpu_max_memory: Size | None = None,
    keep_per_schedule: int = DEFAULT_KEEP_PER_SCHEDULE,
    name: str | None = None,
    burst: bool = False,
    max_jobs: int | None = None,
    dedicated: bool = False,
) -> WorkerOptions:
    """Check what a user wrote for a worker."""
    _check_count("concurrency", concurrency, most=MAX_CONCURRENCY)
    if cpu_children is not None:
        _check_count("cpu_children", cpu_children, most=MAX_CHILDREN)
    if cpu_max_jobs is not None:
        _check_count("cpu_max_jobs", cpu_max_jobs)
    if max_jobs is not None:
        _check_count("max_jobs", max_jobs)
    if name is not None:
        check_name(name, what="worker name")
    if not jobs and (burst or max_jobs):
        raise ConfigError("burst=True and max_jobs are about jobs; leave jobs=True")
    if not jobs and not schedules:
        raise ConfigError("a worker with jobs=False and schedules=False does nothing; leave one of them on")
    lease_length = parse_duration(lease, what="lease")
    if lease_length < _MIN_LEASE:
        raise ConfigError(f"lease must be at least {describe_duration(_MIN_LEASE)}, not {shown(lease)}")
    return WorkerOptions(
        concurrency=concurrency,
        queues=_check_queues((DEFAULT_QUEUE,) if queues is None else queues),
        named_queues=queues is None,
        schedules=schedules,
        jobs=jobs,
        grace=parse_duration(grace, what="grace"),
        lease=lease_length,
        window=parse_duration(window, what="window"),
        retention=None if retention is None else parse_duration(retention, what="retention"),
        capture_logs=capture_logs,
        cpu_children=usable_cores() if cpu_children is None else cpu_children,
        cpu_max_jobs=cpu_max_jobs,
        cpu_max_memory=None if cpu_max_memory is None else parse_size(cpu_max_memory, what="cpu_max_memory"),
        keep_per_schedule=check_keep_per_schedule(keep_per_schedule),
        name=name,
        burst=burst,
        max_jobs=max_jobs,
        dedicated=dedicated,
    )


def _check_count(name: str, number: int, *, most: int | None = None) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= (most or number):
        bound = "" if most is None else f" to {most}"
        raise ConfigError(f"{name} must be a whole number from 1{bound}, not {shown(number)}")


def _check_queues(queues: QueueLimits) -> Mapping[str, int | None]:
    if isinstance(queues, str):
        raise ConfigError(f"queues must be a list such as [{queues!r}], or limits such as {{{queues!r}: 5}}")
    limits = dict(queues) if isinstance(queues, Mapping) else dict.fromkeys(queues)
    if not limits:
        raise ConfigError("queues is empty; name at least one, e.g. queues=['default']")
    for name, limit in limits.items():
        check_name(name, what="queue")
        if limit is not None:
            _check_count(f"the limit of queue {name!r}", limit)
    return limits
