"""Workers as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from duetime.model.instants import Instant, Micros

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
    """Tells a process from a later one with the same id."""
    version: str
    queues: tuple[str, ...]
    slots: int
    tasks: tuple[str, ...] = ()
    """The tasks it can run."""
    declares: tuple[str, ...] = ()
    """The schedules that its code declares."""
    fires: bool = False
    """Whether it fires schedules."""


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
