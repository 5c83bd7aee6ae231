"""Commands as values: what a worker is told through the store, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from duetime.model.instants import Instant
from duetime.model.job import JobId
from duetime.model.worker import WorkerId

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
    kind: CommandKind
    job: JobId | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command as the store has it."""

    id: CommandId
    worker: WorkerId
    kind: str
    """A `CommandKind`, or one that only later releases know."""
    job: JobId | None
    reason: str | None
    created_at: Instant
    taken_at: Instant | None
    done_at: Instant | None
    """When it was carried out or dropped."""
    outcome: str | None
    """What came of it, in the worker's words; for a dropped one, why."""
    dropped: bool
    """Whether the worker was gone before it had answered."""
