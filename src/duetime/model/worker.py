"""Workers: who they are, what they report of themselves, and the commands they are given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from duetime.model.job import JobId
from duetime.model.time import Instant, Micros

WorkerId: TypeAlias = str
WorkerState: TypeAlias = Literal["alive", "stopped", "dead"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """Who a worker says it is when it registers."""

    id: WorkerId
    host: str
    host_key: str | None
    """Equal for processes that can see each other's process ids; `None` where that cannot be told."""
    pid: int
    pid_started: str | None
    """Distinguishes a process from a later one with the same id."""
    version: str
    queues: tuple[str, ...]
    slots: int
    tasks: tuple[str, ...] = ()
    """The tasks it can run."""
    declares: tuple[str, ...] | None = ()
    """The schedules that its code declares; `None` where that is not known."""
    fires: bool = False
    name: str | None = None
    """What it was called when it was started; several may share a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStats:
    """What a worker reports of itself with every pulse."""

    running: int = 0
    done: int = 0
    failed: int = 0
    loop_lag: Micros = 0
    last_error: str | None = None
    paused_at: Instant | None = None
    """Since when it claims nothing, because it was told so."""
    paused_reason: str | None = None

    def plus(self, other: WorkerStats) -> WorkerStats:
        """Return what a worker reports that works on two stores."""
        paused = self if self.paused_at is not None else other
        return WorkerStats(
            running=self.running + other.running,
            done=self.done + other.done,
            failed=self.failed + other.failed,
            loop_lag=max(self.loop_lag, other.loop_lag),
            last_error=other.last_error if self.last_error is None else self.last_error,
            paused_at=paused.paused_at,
            paused_reason=paused.paused_reason,
        )


CommandId: TypeAlias = str


class CommandKind(StrEnum):
    """What a worker can be told to do."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    STOP_NOW = "stop_now"
    STOP_JOB = "stop_job"
    RELEASE_JOB = "release_job"
    STACKS = "stacks"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommand:
    """What is to be told to a worker."""

    id: CommandId
    """Made by the caller, so that the command can be sent again after a lost answer."""
    worker: WorkerId
    kind: str
    """A `CommandKind`, or one that only later releases know."""
    job: JobId | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(NewCommand):
    """A command as the store has it."""

    created_at: Instant
    taken_at: Instant | None
    done_at: Instant | None
    """When it was carried out or dropped."""
    outcome: str | None
    """What came of it, in the worker's words; for a dropped one, why."""
    dropped: bool
    """Whether the worker was gone before it had answered."""
