"""Copies all that one store has to another: a first pass writes what differs, a second one compares."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from duetime.errors import CopyDiffers, CopyError, CopyRefused
from duetime.model.ids import new_job_id, new_token
from duetime.model.store_copy import (
    COPY_BEGUN,
    COPY_ENDED,
    COPY_TARGET,
    LAST_KEY,
    RecordChecksum,
    RecordKind,
    WholeRecord,
    check_not_moved,
    check_run,
    check_target,
    check_untouched,
    check_workers,
    copied_note,
    copy_entry,
    copy_entry_id,
    next_batch_size,
    store_difference,
    weight,
    write_batches,
)
from duetime.model.time import SECOND, Instant, Micros
from duetime.model.worker import CommandKind, NewCommand
from duetime.stores.base import Store

CopyProgress: TypeAlias = Callable[[RecordKind, int], None]
"""Told how many records of a kind one of the two walks has come past."""

_NO_LIMIT: Final = 2**31 - 1
_DRAIN_POLL: Final = 0.1
_CHANGED_MEANWHILE: Final = (
    "something has written to one of them since the copy was begun: stop it, and run the same command again"
)
_STOP_REASON: Final = "the store is about to be copied"


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
        check_not_moved(source.store.moved)
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
    """Make the target the same as the source, and see that it is; what an earlier run has written stays.

    In the source is noted that the work goes on in the target, which is all that is changed there.
    `drain`: how long workers of the source have to stop; `None`: there must be none. Raises `CopyRefused`
    where the target is something else or in use, and `CopyDiffers` where something has written meanwhile.
    """
    since = await _check_target(source, target)
    if drain is not None:
        await _drain_workers(source.store, wait=drain)
    await _check_no_workers(source)
    work = _CopyRun(source, target, await source.store.identity(), new_token(), progress)
    facts: dict[str, object] = {"from": source.name, "run": work.run}
    at = await target.store.now() if since is None else since
    await work.note(COPY_BEGUN, at=at, who=who, facts=facts)
    written = 0
    for kind in RecordKind:
        written += await work.mend(kind, since=at)
    tallies = {kind: await work.compare(kind) for kind in RecordKind}
    await _mark_moved(work, who=who)
    facts |= {kind: {"records": tally.count, "checksum": tally.shown} for kind, tally in tallies.items()}
    await work.note(COPY_ENDED, at=await target.store.now(), who=who, facts=facts)
    return CopyReport(tallies=tallies, written=written, resumed=since is not None)


async def _check_target(source: NamedStore, target: NamedStore) -> Instant | None:
    """Tell since when this copy is being made, if it is; raises `CopyRefused` for a target that is something else."""
    identity = await source.store.identity()
    if await target.store.identity() == identity:
        raise CopyRefused(f"{source.name} and {target.name} are the same store; name two different ones")
    await _check_no_workers(source, target)
    marks = await target.store.entries(COPY_TARGET, limit=_NO_LIMIT)
    there = [
        kind for kind in RecordKind if await target.store.stretch(kind, after="", until=LAST_KEY, limit=1)
    ]
    since = check_target(marks, there, source=identity, where=target.name)
    # A run that has come as far as the note may go on from there.
    for place in (source, target) if since is None else (target,):
        check_not_moved(place.store.moved)
    return since


async def _mark_moved(work: _CopyRun, *, who: str) -> None:
    """Note in the source where the work goes on, and look once more behind a comparison that may have taken long."""
    await work.check_alone()
    source, target = work.source, work.target
    note = copied_note(source.name, target.name, at=await source.store.now(), who=who)
    await source.store.set_moved(note)
    try:
        # Behind the note, for no worker can come to the source any more.
        await _check_no_workers(source)
        if await source.store.counts() != await target.store.counts():
            raise CopyDiffers(f"jobs have changed since they were compared; {_CHANGED_MEANWHILE}")
    except CopyError:
        await source.store.set_moved(None)
        raise


async def _drain_workers(store: Store, *, wait: Micros) -> None:
    """Have all workers stop as after a signal, and wait until they have or until the time is over."""
    alive = [worker.id for worker in await store.workers() if worker.state == "alive"]
    await store.send(
        [
            NewCommand(id=new_job_id(), worker=worker, kind=CommandKind.STOP, reason=_STOP_REASON)
            for worker in alive
        ]
    )
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait / SECOND):
            while any(worker.state == "alive" for worker in await store.workers()):  # noqa: ASYNC110 -- of other processes
                await asyncio.sleep(_DRAIN_POLL)


async def _check_no_workers(source: NamedStore, target: NamedStore | None = None) -> None:
    """Refuse while workers live on the source; or on the target, but for those that were copied.

    One that was killed may still seem alive to a target whose clock is behind.
    """
    known = await source.store.workers()
    if target is None:
        check_workers(known, where=source.name)
        return
    copies = {worker.id for worker in known}
    there = [worker for worker in await target.store.workers() if worker.id not in copies]
    check_workers(there, where=target.name)


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
    """Tells this run from others of the same copy."""
    progress: CopyProgress

    async def note(self, verb: str, *, at: Instant, who: str, facts: Mapping[str, object]) -> None:
        """Say in the target how far it is."""
        mark = copy_entry(self.identity, verb=verb, at=at, who=who, facts=facts)
        await self.target.store.exchange(RecordKind.AUDIT, [mark.key], [mark])

    async def check_alone(self) -> None:
        """Raise `CopyRefused` if another run writes to the target."""
        marks = await self.target.store.entries(COPY_TARGET, limit=_NO_LIMIT)
        check_run(marks, source=self.identity, run=self.run)
        await _check_no_workers(self.source, self.target)

    async def mend(self, kind: RecordKind, *, since: Instant) -> int:
        """Write what differs, and tell how many records that were; `since`: when the first run has begun."""
        written = 0
        async for part in _key_ranges(self.source.store, kind):
            there = await self._there(kind, part)
            check_untouched(kind, part.records, there, since=since)
            gone, put = store_difference(part.records, there)
            if gone or put:
                await self.check_alone()
            for load in write_batches(put):
                await self.target.store.exchange(kind, gone, load)
                gone = []
            written += len(put)
            self.progress(kind, len(part.records))
        return written

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

    async def _there(self, kind: RecordKind, part: _KeyRange) -> list[WholeRecord]:
        found = await self.target.store.stretch(kind, after=part.after, until=part.until, limit=_NO_LIMIT)
        own = copy_entry_id(self.identity)
        return [record for record in found if record.key != own]


async def _key_ranges(store: Store, kind: RecordKind) -> AsyncIterator[_KeyRange]:
    """Yield all records of a kind by key, a few at a time if they are heavy."""
    after, most, heavy = "", 0, 0
    while True:
        most = next_batch_size(most, heavy)
        records = await store.stretch(kind, after=after, until=LAST_KEY, limit=most)
        is_last = len(records) < most
        until = LAST_KEY if is_last else records[-1].key
        yield _KeyRange(after, until, records)
        if is_last:
            return
        after, heavy = until, weight(records)
