"""What is to be done to make one store the copy of another, and whether it may be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from duetime.errors import CopyRefused
from duetime.model.audit import StoredEntry
from duetime.model.instants import Instant, to_datetime
from duetime.model.whole import Kind, Whole
from duetime.model.worker import StoredWorker

MARKS: Final = "[copy]"
"""What entries about copies are about; no schedule can be called so."""
BEGUN: Final = "copy begun"
ENDED: Final = "copy ended"

_FIRST_STRETCH: Final = 100
_LONGEST_STRETCH: Final = 500
_HEAVIEST_STRETCH: Final = 4_000_000
"""In characters: with results, errors and logs a few jobs can be as heavy as thousands of others."""
_SHOWN: Final = 5


class Mending(NamedTuple):
    """What makes the records of a target those of the source."""

    gone: list[str]
    """Keys of what is not as in the source."""
    put: list[Whole]
    """What is missing then."""


def mending(source: Sequence[Whole], target: Sequence[Whole]) -> Mending:
    """Compare the records of two stores between the same keys."""
    if not target:
        return Mending([], list(source))
    wanted = {record.key: record for record in source}
    there = {record.key: record for record in target}
    return Mending(
        [key for key, record in there.items() if wanted.get(key) != record],
        [record for key, record in wanted.items() if there.get(key) != record],
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """How many records there are, and a checksum over them that does not depend on their order."""

    count: int = 0
    checksum: int = 0

    def plus(self, records: Sequence[Whole]) -> Tally:
        """Count some more."""
        return Tally(self.count + len(records), (self.checksum + sum(map(_checksum, records))) % 2**64)

    @property
    def shown(self) -> str:
        """The checksum as it is shown to people."""
        return f"{self.checksum:016x}"


def _checksum(record: Whole) -> int:
    text = json.dumps(record, separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def weight(records: Sequence[Whole]) -> int:
    """Tell about how many characters it takes to write records down."""
    return len(str(records))


def next_stretch(last: int, weight: int) -> int:
    """Tell how many records to take at once after so many of this weight; 0 for the first time."""
    if not last:
        return _FIRST_STRETCH
    return max(1, min(2 * last, last * _HEAVIEST_STRETCH // max(weight, 1), _LONGEST_STRETCH))


def mark_of(source: str) -> str:
    """Name the entry in the target that tells of its copy from this store."""
    return f"copy-{source}"


def mark(source: str, *, verb: str, at: Instant, who: str, facts: Mapping[str, object]) -> Whole:
    """Return the entry that tells how far the copy from this store is."""
    detail = json.dumps({"source": source, **facts})
    return Whole((mark_of(source), at, who, verb, MARKS, detail))


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


def check_target(marks: Iterable[StoredEntry], there: Sequence[Kind], *, source: str, where: str) -> bool:
    """Tell whether a copy from this source goes on; raises `CopyRefused` if the target has anything else."""
    own = next((entry for entry in marks if entry.id == mark_of(source)), None)
    if own is None and there:
        listed = ", ".join(there)
        raise CopyRefused(
            f"{where} is not empty, it has {listed}; copy to an empty database or another namespace"
        )
    if own is not None and own.verb == ENDED:
        when = to_datetime(own.at).isoformat(timespec="seconds")
        raise CopyRefused(
            f"{where} was copied from there in full at {when} and may have run jobs since; "
            "to copy once more, use an empty database or another namespace"
        )
    return own is not None
