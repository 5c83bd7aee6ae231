"""Queues: what is set for one, and how many of its jobs are in each registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from duetime.model.limits import Gate
from duetime.model.states import State
from duetime.model.stored.jobs import LiveWorkers
from duetime.model.text import counted
from duetime.model.time import Instant


class Registry(StrEnum):
    """Where a job is, as people see it."""

    SCHEDULED = "scheduled"
    """Its time has not come, whether or not it is claimed ahead."""
    QUEUED = "queued"
    """Its time has come, and no worker has it."""
    ACTIVE = "active"
    FINISHED = "finished"
    FAILED = "failed"
    """It failed, or was stopped after it had started."""
    CANCELLED = "cancelled"
    """It was called off before it started."""
    SKIPPED = "skipped"


LIVE = frozenset({Registry.SCHEDULED, Registry.QUEUED, Registry.ACTIVE})


def registry_of(state: State, *, due: bool, started: bool) -> Registry:
    """Tell where a job is."""
    if state is State.PENDING:
        return Registry.QUEUED if due else Registry.SCHEDULED
    if state is State.RUNNING:
        return Registry.ACTIVE if started else Registry.SCHEDULED
    if state is State.CANCELLED and started:
        return Registry.FAILED
    return Registry.FINISHED if state is State.SUCCEEDED else Registry(state)


class StateCount(NamedTuple):
    """How many jobs of a queue are alike."""

    queue: str
    state: State
    jobs: int
    due: bool = False
    started: bool = False
    whole: bool = True
    """Whether all of them were counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQueue:
    """What is set for a queue."""

    name: str
    paused_at: Instant | None
    paused_reason: str | None
    limit: Gate


class DueJobs(NamedTuple):
    """How many jobs of a task are due in a queue, and with no worker; perhaps only some of them were counted."""

    queue: str
    task: str
    jobs: int


class UnservedJobs(NamedTuple):
    """Due jobs that no worker will take."""

    why: str
    jobs: int
    """How many, or if they are very many, how many were counted."""

    def __str__(self) -> str:
        more = " or more" if self.jobs >= MOST_COUNTED else ""
        return (
            f"{counted(self.jobs, 'due job')}{more} {'waits' if self.jobs == 1 else 'wait'}, and {self.why}"
        )


MOST_COUNTED = 100
"""How many due jobs of a queue are looked at for those that no worker will take."""


def unserved(due: Iterable[DueJobs], fleet: LiveWorkers) -> list[UnservedJobs]:
    """Return what no worker will take: none serves its queue, or none that does knows its task."""
    counts = Counter[str]()
    for one in due:
        if not (serving := fleet.serving(one.queue)):
            counts[f"no worker serves queue {one.queue}"] += one.jobs
        elif not any(one.task in worker.tasks for worker in serving):
            counts[f"no worker of queue {one.queue} knows task {one.task}"] += one.jobs
    return [UnservedJobs(*found) for found in counts.items()]


class QueueCensus(NamedTuple):
    """What a store has counted; if there is a lot, it may be only a part."""

    queues: list[StoredQueue]
    tallies: list[StateCount]
    gates_whole: bool
    """Whether all jobs that wait at gates were looked at."""
    history_whole: bool
    """Whether all jobs that have ended were looked at."""


@dataclass(slots=True)
class RegistryCount:
    """How many jobs of one queue are in each registry."""

    jobs: Counter[Registry] = field(default_factory=Counter[Registry])
    at_least: set[Registry] = field(default_factory=set[Registry])
    """The registries that hold more, or may."""


def count_by_registry(census: QueueCensus, names: Iterable[str]) -> Mapping[str, RegistryCount]:
    """Count jobs by queue and registry; queues in `names` are there even if they have none."""
    unsure = set[Registry]()
    if not census.gates_whole:
        unsure |= {Registry.SCHEDULED, Registry.QUEUED}
    if not census.history_whole:
        unsure |= set(Registry) - LIVE
    queues = {*names, *(tally.queue for tally in census.tallies)}
    counts = {name: RegistryCount(at_least=set(unsure)) for name in queues}
    for tally in census.tallies:
        registry = registry_of(tally.state, due=tally.due, started=tally.started)
        counts[tally.queue].jobs[registry] += tally.jobs
        if not tally.whole:
            counts[tally.queue].at_least.add(registry)
    return counts
