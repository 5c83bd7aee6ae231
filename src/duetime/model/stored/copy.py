"""Whole records, by which one store is copied to another: their kinds, columns and checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from duetime.model.schedule.record import StoredSchedule
from duetime.model.statistics import StatisticsRow
from duetime.model.stored.jobs import StoredAttempt, StoredJob

RecordRow: TypeAlias = tuple[str | int | float | None, ...]

LAST_KEY: Final = "\U0010ffff"
"""Behind every key: stores list them in the order of their code points."""


class RecordKind(StrEnum):
    """The kinds of records, in the order in which they are copied: each after those that decide how it is treated."""

    QUEUES = "queues"
    GATES = "gates"
    WORKERS = "workers"
    JOBS = "jobs"
    SCHEDULES = "schedules"
    AUDIT = "audit"
    STATISTICS = "statistics"


class WholeRecord(NamedTuple):
    """One record with everything that belongs to it."""

    row: RecordRow
    """The columns of its kind; the first is its key."""
    parts: tuple[tuple[RecordRow, ...], ...] = ()
    """The rows of each of its parts, sorted; the first column is the key of the record."""

    @property
    def key(self) -> str:
        """What names it among those of its kind."""
        return str(self.row[0])


_SCHEDULE: Final = tuple(StoredSchedule.__dataclass_fields__)

COLUMNS: Final[Mapping[RecordKind, tuple[str, ...]]] = {
    RecordKind.QUEUES: ("name", "paused_at", "paused_reason", "most", "rate_count", "rate_period", "starts"),
    RecordKind.GATES: ("name", "task", "most", "rate_count", "rate_period", "starts", "seen_at"),
    RecordKind.WORKERS: (
        "id", "state", "host", "host_key", "pid", "pid_started", "version", "queues", "tasks", "declares", "fires",
        "name", "slots", "started_at", "beat_at", "lease_until", "running", "done", "failed", "loop_lag", "last_error",
        "paused_at", "paused_reason",
    ),
    RecordKind.JOBS: (
        *StoredJob.__dataclass_fields__, "claim_id", "cancel_reason", "keep_key", "key_until", "key_held",
    ),
    RecordKind.SCHEDULES: _SCHEDULE[: _SCHEDULE.index("live")],
    RecordKind.AUDIT: ("id", "at", "who", "verb", "target", "detail"),
    RecordKind.STATISTICS: StatisticsRow._fields,
}  # fmt: skip
"""What is in a row. Lists, such as the last starts at a gate, are JSON, and so is the detail of an entry."""

PART_COLUMNS: Final[Mapping[RecordKind, tuple[tuple[str, ...], ...]]] = {
    RecordKind.WORKERS: (
        ("worker", "id", "kind", "job", "reason", "created_at", "taken_at", "done_at", "outcome", "dropped"),
    ),
    RecordKind.JOBS: (
        tuple(StoredAttempt.__dataclass_fields__),
        ("job_id", "fence", "line", "attempt", "text"),
    ),
}  # fmt: skip
"""What is in the rows of parts: what a worker was told; the tries of a job, and its logs."""


@dataclass(frozen=True, slots=True)
class RecordChecksum:
    """How many records there are, and a checksum over them that does not depend on their order."""

    count: int = 0
    checksum: int = 0

    def plus(self, records: Sequence[WholeRecord]) -> RecordChecksum:
        """Count some more."""
        checksum = self.checksum + sum(map(_checksum, records))
        return RecordChecksum(self.count + len(records), checksum % 2**64)

    @property
    def shown(self) -> str:
        """The checksum as it is shown to people."""
        return f"{self.checksum:016x}"


def _checksum(record: WholeRecord) -> int:
    text = json.dumps(record, separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
