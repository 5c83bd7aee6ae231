"""Copies all that one store has to another: a first walk writes what differs, a second one compares."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from duetime.errors import CopyDiffers, CopyError, CopyRefused
from duetime.model.ids import new_job_id, new_token
from duetime.model.stored.audit import StoredAuditEntry
from duetime.model.stored.copy import COLUMNS, LAST_KEY, RecordChecksum, RecordKind, WholeRecord
from duetime.model.stored.jobs import StoredWorker
from duetime.model.text import short_list
from duetime.model.time import SECOND, Instant, Micros, to_datetime
from duetime.model.worker import CommandKind, NewCommand
from duetime.stores.base import Store

CopyProgress: TypeAlias = Callable[[RecordKind, int], None]
"""Told how many records of a kind one of the two walks has come past."""

COPY_TARGET: Final = "[copy]"
"""What entries about copies are about; no schedule can have this name."""
_BEGUN: Final = "copy begun"
_ENDED: Final = "copy ended"

_NO_LIMIT: Final = 2**31 - 1
_FIRST_BATCH: Final = 20
_LARGEST_BATCH: Final = 500
_HEAVIEST_BATCH: Final = 2_000_000
"""What to read or write at once, in characters: with results, errors and logs a few jobs can be as heavy as thousands of
others, and a server may take no more than 16 MB, in which some characters count for several."""
_DRAIN_POLL: Final = 0.1
_WORKERS_SHOWN: Final = 5
_EMPTY_NEEDED: Final = "to copy once more, use an empty database or another namespace"
_CHANGED: Final = "something has written to one of them since the copy was begun"
_CHANGED_MEANWHILE: Final = f"{_CHANGED}: stop it, and run the same command again"


class NamedStore(NamedTuple):
    """A store and what messages call it."""

    store: Store
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What was copied, or would be."""

    tallies: Mapping[RecordKind, RecordChecksum]
    """What the source has, and with it the target."""
    written: int = 0
    """How many records this run had to write."""
    resumed: bool = False
    """Whether a run before this one had begun."""


async def rehearse_copy(
    source: NamedStore, target: NamedStore | None, *, drain: bool, progress: CopyProgress
) -> CopyReport:
    """Refuse what `copy` would refuse, read everything, and write nothing; `None`: a target without tables."""
    if target is None:
        _check_not_moved(source)
    since = None if target is None else await _check_target(source, target)
    if not drain:
        await _check_no_workers(source)
    tallies = dict.fromkeys(RecordKind, RecordChecksum())
    for kind in RecordKind:
        async for part in _key_ranges(source.store, kind):
            tallies[kind] = tallies[kind].plus(part.records)
            progress(kind, len(part.records))
    return CopyReport(tallies=tallies, resumed=since is not None)


async def copy_store(
    source: NamedStore, target: NamedStore, *, drain: Micros | None, who: str, progress: CopyProgress
) -> CopyReport:
    """Make the target the same as the source, and check that it is; what an earlier run has written stays.

    A note in the source says that the work goes on in the target; nothing else is changed there. `drain`: how long
    workers of the source have to stop; `None`: there must be none. Raises `CopyRefused` where the target is something
    else or in use, and `CopyDiffers` where something has written meanwhile.
    """
    since = await _check_target(source, target)
    if drain is not None:
        await _drain_workers(source.store, wait=drain)
    await _check_no_workers(source)
    began = await target.store.now() if since is None else since
    copy = _CopyRun(source, target, await source.store.identity(), new_token(), began, who, progress)
    await copy.note(_BEGUN, at=began)
    written = sum([await copy.mend(kind) for kind in RecordKind])
    tallies = {kind: await copy.compare(kind) for kind in RecordKind}
    await copy.mark_moved()
    counts = {kind: {"records": tally.count, "checksum": tally.shown} for kind, tally in tallies.items()}
    await copy.note(_ENDED, at=await target.store.now(), **counts)
    return CopyReport(tallies=tallies, written=written, resumed=since is not None)


async def _check_target(source: NamedStore, target: NamedStore) -> Instant | None:
    """Return since when this copy is being made, if it is; raises `CopyRefused` for a target that is something else."""
    identity = await source.store.identity()
    if await target.store.identity() == identity:
        raise CopyRefused(f"{source.name} and {target.name} are the same store; name two different ones")
    await _check_no_workers(source, target)
    mark = await _mark_of(identity, target)
    if mark is None:
        stretch = partial(target.store.stretch, after="", until=LAST_KEY, limit=1)
        if found := [kind for kind in RecordKind if await stretch(kind)]:
            raise CopyRefused(
                f"{target.name} is not empty, it has {', '.join(found)}; copy to an empty database or another namespace"
            )
        _check_not_moved(source)
    elif mark.verb == _ENDED:
        raise CopyRefused(
            f"{target.name} was copied from there in full at {_shown(mark.at)} and may have run jobs since; {_EMPTY_NEEDED}"
        )
    # A source that an earlier run of this copy has marked may be read on.
    _check_not_moved(target)
    return None if mark is None else mark.at


async def _mark_of(identity: str, target: NamedStore) -> StoredAuditEntry | None:
    """Return the entry in the target that tells of its copy from this source."""
    marks = await target.store.entries(COPY_TARGET, limit=_NO_LIMIT)
    return next((entry for entry in marks if entry.id == _mark_id(identity)), None)


def _mark_id(identity: str) -> str:
    return f"copy-{identity}"


def _check_not_moved(place: NamedStore) -> None:
    if (note := place.store.moved) is not None:
        raise CopyRefused(f"{note}, and the work goes on there; copy from there, or run `duetime reopen`")


async def _drain_workers(store: Store, *, wait: Micros) -> None:
    """Have all workers stop as after a signal, and wait until they have or until the time is over."""
    alive = [worker.id for worker in _alive(await store.workers())]
    stop = partial(NewCommand, kind=CommandKind.STOP, reason="the store is about to be copied")
    await store.send([stop(id=new_job_id(), worker=worker) for worker in alive])
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait / SECOND):
            while _alive(await store.workers()):  # noqa: ASYNC110 -- of other processes
                await asyncio.sleep(_DRAIN_POLL)


async def _check_no_workers(source: NamedStore, target: NamedStore | None = None) -> None:
    """Refuse while workers live on the source; or on the target, but for those that were copied.

    One that was killed may still seem alive to a target whose clock is behind.
    """
    workers, where = await source.store.workers(), source.name
    if target is not None:
        copied = {worker.id for worker in workers}
        workers = [worker for worker in await target.store.workers() if worker.id not in copied]
        where = target.name
    if alive := [f"{worker.id} ({worker.host}, process {worker.pid})" for worker in _alive(workers)]:
        raise CopyRefused(
            f"workers run on {where}: {short_list(alive, most=_WORKERS_SHOWN)}; stop them and whatever starts them "
            "again, or say --drain for those of the source"
        )


def _alive(workers: Iterable[StoredWorker]) -> list[StoredWorker]:
    return [worker for worker in workers if worker.state == "alive"]


class _KeyRange(NamedTuple):
    """Records of the source, and the keys between which they are all that there is."""

    after: str
    until: str
    records: list[WholeRecord]


class _CopyRun(NamedTuple):
    """Two stores, walked through side by side."""

    source: NamedStore
    target: NamedStore
    identity: str
    """Of the source."""
    run: str
    """Distinguishes this run from others of the same copy."""
    began: Instant
    """When the first run of the copy began."""
    who: str
    progress: CopyProgress

    async def note(self, verb: str, *, at: Instant, **facts: object) -> None:
        """Say in the target how far the copy is."""
        said = {"source": self.identity, "from": self.source.name, "run": self.run, **facts}
        key = _mark_id(self.identity)
        mark = WholeRecord((key, at, self.who, verb, COPY_TARGET, json.dumps(said)))
        await self.target.store.exchange(RecordKind.AUDIT, [key], [mark])

    async def check_alone(self) -> None:
        """Raise `CopyRefused` if another run has taken over, and perhaps ended, or a worker has come to the target."""
        mark = await _mark_of(self.identity, self.target)
        if mark is None or mark.verb != _BEGUN or mark.detail.get("run") != self.run:
            raise CopyRefused(
                "the same copy was begun once more elsewhere, and this run gives way; wait for that one"
            )
        await _check_no_workers(self.source, self.target)

    async def mend(self, kind: RecordKind) -> int:
        """Write what differs, and return how many records that were."""
        written = 0
        async for part in _key_ranges(self.source.store, kind):
            ours = {record.key: record for record in part.records}
            theirs = {record.key: record for record in await self._there(kind, part)}
            gone = [key for key, record in theirs.items() if ours.get(key) != record]
            put = [record for key, record in ours.items() if theirs.get(key) != record]
            for key in gone:
                self._check_unused(kind, theirs[key], ours.get(key))
            if gone or put:
                await self.check_alone()
                for load in _write_batches(put):
                    await self.target.store.exchange(kind, gone, load)
                    gone = []
            written += len(put)
            self.progress(kind, len(part.records))
        return written

    def _check_unused(self, kind: RecordKind, record: WholeRecord, source: WholeRecord | None) -> None:
        """Raise `CopyRefused` if a record that differs shows that the target has been used since its copy was begun.

        To mend such a target would remove what was enqueued there, and run jobs again that have run there.
        """
        theirs = dict(zip(COLUMNS[kind], record.row, strict=True))
        if source is None:
            # Only some kinds say when a record was made.
            made_at = theirs.get("at" if kind is RecordKind.AUDIT else "created_at", 0)
            used = kind is RecordKind.WORKERS or int(made_at or 0) >= self.began
        else:
            ours = dict(zip(COLUMNS[kind], source.row, strict=True))
            ended_there = theirs.get("finished_at") is not None and ours["finished_at"] is None
            ran_there = int(theirs.get("fence") or 0) > int(ours.get("fence") or 0)
            used = kind is RecordKind.JOBS and (ended_there or ran_there)
        if used:
            raise CopyRefused(
                f"the target has been used since its copy was begun, which {kind} {record.key} shows; {_EMPTY_NEEDED}"
            )

    async def compare(self, kind: RecordKind) -> RecordChecksum:
        """Count both sides; raises `CopyDiffers` unless they are the same."""
        ours, theirs = RecordChecksum(), RecordChecksum()
        async for part in _key_ranges(self.source.store, kind):
            ours = ours.plus(part.records)
            theirs = theirs.plus(await self._there(kind, part))
            self.progress(kind, len(part.records))
        if ours != theirs:
            raise CopyDiffers(
                f"{kind} differ: the source has {ours.count:,} with the checksum {ours.shown}, the copy has "
                f"{theirs.count:,} with {theirs.shown}; {_CHANGED_MEANWHILE}"
            )
        return ours

    async def mark_moved(self) -> None:
        """Note in the source where the work goes on, and check once more, as the comparison may have taken long."""
        await self.check_alone()
        source, target = self.source, self.target
        at = _shown(await source.store.now())
        await source.store.set_moved(f"{source.name} was copied to {target.name} at {at} by {self.who}")
        try:
            # After the note no worker can come to the source any more.
            await _check_no_workers(source)
            if await source.store.counts() != await target.store.counts():
                raise CopyDiffers(f"jobs have changed since they were compared; {_CHANGED_MEANWHILE}")
        except CopyError:
            await source.store.set_moved(None)
            raise

    async def _there(self, kind: RecordKind, part: _KeyRange) -> list[WholeRecord]:
        found = await self.target.store.stretch(kind, after=part.after, until=part.until, limit=_NO_LIMIT)
        return [record for record in found if record.key != _mark_id(self.identity)]


async def _key_ranges(store: Store, kind: RecordKind) -> AsyncIterator[_KeyRange]:
    """Yield all records of a kind by key, a few at a time if they are heavy."""
    after, most = "", _FIRST_BATCH
    while after != LAST_KEY:
        records = await store.stretch(kind, after=after, until=LAST_KEY, limit=most)
        until = LAST_KEY if len(records) < most else records[-1].key
        yield _KeyRange(after, until, records)
        after = until
        most = max(1, min(2 * most, most * _HEAVIEST_BATCH // _weight(records), _LARGEST_BATCH))


def _write_batches(records: Iterable[WholeRecord]) -> list[list[WholeRecord]]:
    """Divide what is to be written, so that each part can be written at once; at least one part, which may be empty."""
    parts, room = [list[WholeRecord]()], _HEAVIEST_BATCH
    for record in records:
        room -= _weight([record])
        if room < 0 and parts[-1]:
            parts.append([])
            room = _HEAVIEST_BATCH - _weight([record])
        parts[-1].append(record)
    return parts


def _weight(records: list[WholeRecord]) -> int:
    """Return about how many characters it takes to write records down."""
    return len(str(records))


def _shown(at: Instant) -> str:
    return to_datetime(at).isoformat(timespec="seconds")
