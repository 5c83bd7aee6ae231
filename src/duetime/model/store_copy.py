"""Copying one store into another: whole records, how two stores differ, and whether the copy may be made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from duetime.errors import CopyRefused
from duetime.model.audit import StoredAuditEntry
from duetime.model.schedule.record import StoredSchedule
from duetime.model.stored import StoredAttempt, StoredJob, StoredWorker
from duetime.model.time import Instant, to_datetime

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
        "slots", "started_at", "beat_at", "lease_until", "running", "done", "failed", "loop_lag", "last_error",
        "paused_at", "paused_reason",
    ),
    RecordKind.JOBS: (
        *StoredJob.__dataclass_fields__, "claim_id", "cancel_reason", "keep_key", "key_until", "key_held",
    ),
    RecordKind.SCHEDULES: _SCHEDULE[: _SCHEDULE.index("live")],
    RecordKind.AUDIT: ("id", "at", "who", "verb", "target", "detail"),
}  # fmt: skip
"""What is in a row. Lists, such as the last starts at a gate, are JSON, and so is the detail of an entry."""

PART_COLUMNS: Final[Mapping[RecordKind, tuple[tuple[str, ...], ...]]] = {
    RecordKind.WORKERS: (
        (
            "worker", "id", "kind", "job", "reason", "created_at", "taken_at", "done_at", "outcome", "dropped",
        ),
    ),
    RecordKind.JOBS: (
        tuple(StoredAttempt.__dataclass_fields__),
        ("job_id", "fence", "line", "attempt", "text"),
    ),
}  # fmt: skip
"""What is in the rows of parts: what a worker was told; the tries of a job, and its logs."""

COPY_TARGET: Final = "[copy]"
"""What entries about copies are about; no schedule can be called so."""
COPY_BEGUN: Final = "copy begun"
COPY_ENDED: Final = "copy ended"

_FIRST_BATCH: Final = 20
_LARGEST_BATCH: Final = 500
_HEAVIEST_BATCH: Final = 2_000_000
"""What to read or write at once, in characters: with results, errors and logs a few jobs can be as heavy as thousands of
others, and a server may take no more than 16 MB, in which some characters count for several."""
_SHOWN: Final = 5


class StoreDifference(NamedTuple):
    """What makes the records of a target those of the source."""

    gone: list[str]
    """Keys of what is not as in the source."""
    put: list[WholeRecord]
    """What is missing then."""


def store_difference(source: Sequence[WholeRecord], target: Sequence[WholeRecord]) -> StoreDifference:
    """Compare the records of two stores between the same keys."""
    if not target:
        return StoreDifference([], list(source))
    wanted = {record.key: record for record in source}
    there = {record.key: record for record in target}
    return StoreDifference(
        [key for key, record in there.items() if wanted.get(key) != record],
        [record for key, record in wanted.items() if there.get(key) != record],
    )


@dataclass(frozen=True, slots=True)
class RecordChecksum:
    """How many records there are, and a checksum over them that does not depend on their order."""

    count: int = 0
    checksum: int = 0

    def plus(self, records: Sequence[WholeRecord]) -> RecordChecksum:
        """Count some more."""
        return RecordChecksum(
            self.count + len(records), (self.checksum + sum(map(_checksum, records))) % 2**64
        )

    @property
    def shown(self) -> str:
        """The checksum as it is shown to people."""
        return f"{self.checksum:016x}"


def _checksum(record: WholeRecord) -> int:
    text = json.dumps(record, separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def weight(records: Sequence[WholeRecord]) -> int:
    """Tell about how many characters it takes to write records down."""
    return len(str(records))


def next_batch_size(last: int, weight: int) -> int:
    """Tell how many records to take at once, from the number taken last, 0 at first, and their weight."""
    if not last:
        return _FIRST_BATCH
    return max(1, min(2 * last, last * _HEAVIEST_BATCH // max(weight, 1), _LARGEST_BATCH))


def write_batches(records: Iterable[WholeRecord]) -> list[list[WholeRecord]]:
    """Divide what is to be written, so that each part can be written at once; at least one part, which may be empty."""
    parts, room = [list[WholeRecord]()], _HEAVIEST_BATCH
    for record in records:
        room -= weight([record])
        if room < 0 and parts[-1]:
            parts.append([])
            room = _HEAVIEST_BATCH - weight([record])
        parts[-1].append(record)
    return parts


def copy_entry_id(source: str) -> str:
    """Name the entry in the target that tells of its copy from this store."""
    return f"copy-{source}"


def copy_entry(source: str, *, verb: str, at: Instant, who: str, facts: Mapping[str, object]) -> WholeRecord:
    """Return the entry that tells how far the copy from this store is."""
    detail = json.dumps({"source": source, **facts})
    return WholeRecord((copy_entry_id(source), at, who, verb, COPY_TARGET, detail))


def copied_note(source: str, target: str, *, at: Instant, who: str) -> str:
    """Return what is noted in a source that was copied."""
    return f"{source} was copied to {target} at {_shown(at)} by {who}"


def check_not_moved(note: str | None) -> None:
    """Raise `CopyRefused` for a store whose work goes on elsewhere."""
    if note is not None:
        raise CopyRefused(
            f"{note}, and the work goes on there; copy from there, or run `duetime reopen` to use it all the same"
        )


def check_workers(workers: Iterable[StoredWorker], *, where: str) -> None:
    """Raise `CopyRefused` if one of them is alive."""
    alive = [worker for worker in workers if worker.state == "alive"]
    if alive:
        listed = ", ".join(f"{worker.id} ({worker.host}, process {worker.pid})" for worker in alive[:_SHOWN])
        more = f" and {len(alive) - _SHOWN} more" if len(alive) > _SHOWN else ""
        raise CopyRefused(
            f"workers run on {where}: {listed}{more}; stop them and whatever starts them again, or say --drain for those "
            "of the source"
        )


def check_target(
    marks: Iterable[StoredAuditEntry], there: Sequence[RecordKind], *, source: str, where: str
) -> Instant | None:
    """Tell since when a copy from this source is being made; raises `CopyRefused` if the target has anything else."""
    own = next((entry for entry in marks if entry.id == copy_entry_id(source)), None)
    if own is None and there:
        listed = ", ".join(there)
        raise CopyRefused(
            f"{where} is not empty, it has {listed}; copy to an empty database or another namespace"
        )
    if own is not None and own.verb == COPY_ENDED:
        raise CopyRefused(
            f"{where} was copied from there in full at {_shown(own.at)} and may have run jobs since; "
            "to copy once more, use an empty database or another namespace"
        )
    return None if own is None else own.at


def check_run(marks: Iterable[StoredAuditEntry], *, source: str, run: str) -> None:
    """Raise `CopyRefused` if another run has taken over, and perhaps ended."""
    own = next((entry for entry in marks if entry.id == copy_entry_id(source)), None)
    if own is None or own.verb != COPY_BEGUN or own.detail.get("run") != run:
        raise CopyRefused(
            "the same copy was begun once more elsewhere, and this run gives way; wait for that one"
        )


def check_untouched(
    kind: RecordKind, source: Iterable[WholeRecord], target: Iterable[WholeRecord], *, since: Instant
) -> None:
    """Raise `CopyRefused` if records of a target that was begun show that it has been used since.

    To mend such a target would remove what was enqueued there, and have jobs run again that have run there.
    """
    ours = {record.key: record for record in source}
    for record in target:
        twin = ours.get(record.key)
        if record != twin and _is_used(kind, record, twin, since=since):
            raise CopyRefused(
                f"the target has been used since its copy was begun, which {kind} {record.key} shows; to copy "
                "once more, use an empty database or another namespace"
            )


def _is_used(kind: RecordKind, record: WholeRecord, twin: WholeRecord | None, *, since: Instant) -> bool:
    """Whether a record of the target is none that the source has had."""
    theirs = _named(kind, record)
    if twin is None:
        # Only some kinds say when a record was made.
        made_at: Instant = theirs.get("at" if kind is RecordKind.AUDIT else "created_at", 0)
        return kind is RecordKind.WORKERS or made_at >= since
    ours = _named(kind, twin)
    return kind is RecordKind.JOBS and (
        theirs["fence"] > ours["fence"] or (theirs["finished_at"] is not None and ours["finished_at"] is None)
    )


def _named(kind: RecordKind, record: WholeRecord) -> Mapping[str, Any]:
    return dict(zip(COLUMNS[kind], record.row, strict=True))


def _shown(at: Instant) -> str:
    return to_datetime(at).isoformat(timespec="seconds")
