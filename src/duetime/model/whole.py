"""Whole records: all that a store keeps of something, in the same columns whichever store it is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from duetime.model.schedule import StoredSchedule
from duetime.model.stored import StoredAttempt, StoredJob

Row: TypeAlias = tuple[str | int | float | None, ...]

LAST_KEY: Final = "\U0010ffff"
"""Behind every key: stores list them in the order of their code points."""


class Kind(StrEnum):
    """What there are records of; in this order nothing comes before what decides how it is treated."""

    QUEUES = "queues"
    GATES = "gates"
    WORKERS = "workers"
    JOBS = "jobs"
    SCHEDULES = "schedules"
    AUDIT = "audit"


class Whole(NamedTuple):
    """One record with everything that belongs to it."""

    row: Row
    """The columns of its kind; the first is its key."""
    parts: tuple[tuple[Row, ...], ...] = ()
    """The rows of each of its parts, sorted; the first column is the key of the record."""

    @property
    def key(self) -> str:
        """What names it among those of its kind."""
        return str(self.row[0])


_SCHEDULE: Final = tuple(StoredSchedule.__dataclass_fields__)

COLUMNS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.QUEUES: ("name", "paused_at", "paused_reason", "most", "rate_count", "rate_period", "starts"),
    Kind.GATES: ("name", "task", "most", "rate_count", "rate_period", "starts", "seen_at"),
    Kind.WORKERS: (
        "id", "state", "host", "host_key", "pid", "pid_started", "version", "queues", "tasks", "declares", "fires",
        "slots", "started_at", "beat_at", "lease_until", "running", "done", "failed", "loop_lag", "last_error",
        "paused_at", "paused_reason",
    ),
    Kind.JOBS: (
        *StoredJob.__dataclass_fields__, "claim_id", "cancel_reason", "keep_key", "key_until", "key_held",
    ),
    Kind.SCHEDULES: _SCHEDULE[: _SCHEDULE.index("live")],
    Kind.AUDIT: ("id", "at", "who", "verb", "target", "detail"),
}  # fmt: skip
"""What is in a row. Lists, such as the last starts at a gate, are JSON, and so is the detail of an entry."""

PARTS: Final[Mapping[Kind, tuple[tuple[str, ...], ...]]] = {
    Kind.WORKERS: (
        (
            "worker", "id", "kind", "job", "reason", "created_at", "taken_at", "done_at", "outcome", "dropped",
        ),
    ),
    Kind.JOBS: (
        tuple(StoredAttempt.__dataclass_fields__),
        ("job_id", "fence", "line", "attempt", "text"),
    ),
}  # fmt: skip
"""What is in the rows of parts: what a worker was told; the tries of a job, and its logs."""
