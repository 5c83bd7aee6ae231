"""What is to be done to make one store the copy of another, and whether it may be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from duetime.errors import CopyRefused
from duetime.model.audit import StoredEntry
from duetime.model.instants import Instant, to_datetime
from duetime.model.stored import StoredWorker
from duetime.model.whole import COLUMNS, Kind, Whole

MARKS: Final = "[copy]"
"""What entries about copies are about; no schedule can be called so."""
BEGUN: Final = "copy begun"
ENDED: Final = "copy ended"

_FIRST_STRETCH: Final = 20
_LONGEST_STRETCH: Final = 500
_HEAVIEST: Final = 2_000_000
"""What to read or write at once, in characters: with results, errors and logs a few jobs can be as heavy as thousands of
others, and a server may take no more than 16 MB, in which some characters count for several."""
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
    return max(1, min(2 * last, last * _HEAVIEST // max(weight, 1), _LONGEST_STRETCH))


def loads(records: Iterable[Whole]) -> list[list[Whole]]:
    """Divide what is to be written, so that each part can be written at once; at least one part, which may be empty."""
    parts, room = [list[Whole]()], _HEAVIEST
    for record in records:
        room -= weight([record])
        if room < 0 and parts[-1]:
            parts.append([])
            room = _HEAVIEST - weight([record])
        parts[-1].append(record)
    return parts


def mark_of(source: str) -> str:
    """Name the entry in the target that tells of its copy from this store."""
    return f"copy-{source}"


def mark(source: str, *, verb: str, at: Instant, who: str, facts: Mapping[str, object]) -> Whole:
    """Return the entry that tells how far the copy from this store is."""
    detail = json.dumps({"source": source, **facts})
    return Whole((mark_of(source), at, who, verb, MARKS, detail))


def moved(source: str, target: str, *, at: Instant, who: str) -> str:
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
    marks: Iterable[StoredEntry], there: Sequence[Kind], *, source: str, where: str
) -> Instant | None:
    """Tell since when a copy from this source is being made; raises `CopyRefused` if the target has anything else."""
    own = next((entry for entry in marks if entry.id == mark_of(source)), None)
    if own is None and there:
        listed = ", ".join(there)
        raise CopyRefused(
            f"{where} is not empty, it has {listed}; copy to an empty database or another namespace"
        )
    if own is not None and own.verb == ENDED:
        raise CopyRefused(
            f"{where} was copied from there in full at {_shown(own.at)} and may have run jobs since; "
            "to copy once more, use an empty database or another namespace"
        )
    return None if own is None else own.at


def check_run(marks: Iterable[StoredEntry], *, source: str, run: str) -> None:
    """Raise `CopyRefused` if another run has taken over, and perhaps ended."""
    own = next((entry for entry in marks if entry.id == mark_of(source)), None)
    if own is None or own.verb != BEGUN or own.detail.get("run") != run:
        raise CopyRefused(
            "the same copy was begun once more elsewhere, and this run gives way; wait for that one"
        )


def check_untouched(kind: Kind, source: Iterable[Whole], target: Iterable[Whole], *, since: Instant) -> None:
    """Raise `CopyRefused` if records of a target that was begun show that somebody has used it since.

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


def _is_used(kind: Kind, record: Whole, twin: Whole | None, *, since: Instant) -> bool:
    """Whether a record of the target is none that the source has had."""
    theirs = _named(kind, record)
    if twin is None:
        return kind is Kind.WORKERS or _made_at(kind, theirs) >= since
    ours = _named(kind, twin)
    return kind is Kind.JOBS and (
        theirs["fence"] > ours["fence"] or (theirs["finished_at"] is not None and ours["finished_at"] is None)
    )


def _named(kind: Kind, record: Whole) -> Mapping[str, Any]:
    return dict(zip(COLUMNS[kind], record.row, strict=True))


def _made_at(kind: Kind, columns: Mapping[str, Any]) -> Instant:
    """Tell when a record was made; 0 for kinds that do not say so."""
    at: Instant = columns.get("at" if kind is Kind.AUDIT else "created_at", 0)
    return at


def _shown(at: Instant) -> str:
    return to_datetime(at).isoformat(timespec="seconds")
