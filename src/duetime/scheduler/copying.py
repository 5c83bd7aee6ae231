"""Copies all that one store has to another: a first walk over both mends what differs, a second one compares."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from duetime.errors import CopyDiffers, CopyError, CopyRefused
from duetime.model import copying
from duetime.model.command import CommandKind, NewCommand
from duetime.model.copying import Tally
from duetime.model.ids import new_job_id, new_token
from duetime.model.instants import SECOND, Instant, Micros
from duetime.model.whole import LAST_KEY, Kind, Whole
from duetime.stores.base import Store

Progress: TypeAlias = Callable[[Kind, int], None]
"""Told how many records of a kind one of the two walks has come past."""

_ALL: Final = 2**31 - 1
_LOOK: Final = 0.1
_AGAIN: Final = (
    "something has written to one of them since the copy was begun: stop it, and run the same command again"
)
_WHY: Final = "the store is about to be copied"


class Place(NamedTuple):
    """A store and what messages call it."""

    store: Store
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What was copied, or would be."""

    tallies: Mapping[Kind, Tally]
    """What the source has, and with it the target."""
    written: int = 0
    """How many records this run had to write."""
    resumed: bool = False
    """Whether a run before this one had begun."""


async def rehearse(source: Place, target: Place | None, *, drain: bool, progress: Progress) -> Copied:
    """Refuse what `copy` would refuse, read everything, and write nothing; `None`: a target without tables."""
    if target is None:
        copying.check_not_moved(source.store.moved)
    since = None if target is None else await _admit(source, target)
    if not drain:
        await _no_workers(source)
    tallies = dict.fromkeys(Kind, Tally())
    for kind in Kind:
        async for part in _walk(source.store, kind):
            tallies[kind] = tallies[kind].plus(part.records)
            progress(kind, len(part.records))
    return Copied(tallies=tallies, resumed=since is not None)


async def copy(source: Place, target: Place, *, drain: Micros | None, who: str, progress: Progress) -> Copied:
    """Make the target the same as the source, and see that it is; what an earlier run has written stays.

    In the source is noted that the work goes on in the target, which is all that is changed there.
    `drain`: how long workers of the source have to stop; `None`: there must be none. Raises `CopyRefused`
    where the target is something else or in use, and `CopyDiffers` where something has written meanwhile.
    """
    since = await _admit(source, target)
    if drain is not None:
        await _drain(source.store, wait=drain)
    await _no_workers(source)
    work = _Work(source, target, await source.store.identity(), new_token(), progress)
    facts: dict[str, object] = {"from": source.name, "run": work.run}
    at = await target.store.now() if since is None else since
    await work.note(copying.BEGUN, at=at, who=who, facts=facts)
    written = 0
    for kind in Kind:
        written += await work.mend(kind, since=at)
    tallies = {kind: await work.compare(kind) for kind in Kind}
    await _move(work, who=who)
    facts |= {kind: {"records": tally.count, "checksum": tally.shown} for kind, tally in tallies.items()}
    await work.note(copying.ENDED, at=await target.store.now(), who=who, facts=facts)
    return Copied(tallies=tallies, written=written, resumed=since is not None)


async def _admit(source: Place, target: Place) -> Instant | None:
    """Tell since when this copy is being made, if it is; raises `CopyRefused` for a target that is something else."""
    identity = await source.store.identity()
    if await target.store.identity() == identity:
        raise CopyRefused(f"{source.name} and {target.name} are the same store; name two different ones")
    await _no_workers(source, target)
    marks = await target.store.entries(copying.MARKS, limit=_ALL)
    there = [kind for kind in Kind if await target.store.stretch(kind, after="", until=LAST_KEY, limit=1)]
    since = copying.check_target(marks, there, source=identity, where=target.name)
    # A run that has come as far as the note may go on from there.
    for place in (source, target) if since is None else (target,):
        copying.check_not_moved(place.store.moved)
    return since


async def _move(work: _Work, *, who: str) -> None:
    """Note in the source where the work goes on, and look once more behind a comparison that may have taken long."""
    await work.check_alone()
    source, target = work.source, work.target
    note = copying.moved(source.name, target.name, at=await source.store.now(), who=who)
    await source.store.set_moved(note)
    try:
        # Behind the note, for no worker can come to the source any more.
        await _no_workers(source)
        if await source.store.counts() != await target.store.counts():
            raise CopyDiffers(f"jobs have changed since they were compared; {_AGAIN}")
    except CopyError:
        await source.store.set_moved(None)
        raise


async def _drain(store: Store, *, wait: Micros) -> None:
    """Have all workers stop as after a signal, and wait until they have or until the time is over."""
    alive = [worker.id for worker in await store.workers() if worker.state == "alive"]
    await store.send(
        [NewCommand(id=new_job_id(), worker=worker, kind=CommandKind.STOP, reason=_WHY) for worker in alive]
    )
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait / SECOND):
            while any(worker.state == "alive" for worker in await store.workers()):  # noqa: ASYNC110 -- of other processes
                await asyncio.sleep(_LOOK)


async def _no_workers(source: Place, target: Place | None = None) -> None:
    """Refuse while workers live on the source; or on the target, but for those that were copied.

    One that was killed may still seem alive to a target whose clock is behind.
    """
    known = await source.store.workers()
    if target is None:
        copying.check_workers(known, where=source.name)
        return
    copies = {worker.id for worker in known}
    there = [worker for worker in await target.store.workers() if worker.id not in copies]
    copying.check_workers(there, where=target.name)


class _Stretch(NamedTuple):
    """Records of the source, and the keys between which they are all that there is."""

    after: str
    until: str
    records: list[Whole]


class _Work(NamedTuple):
    """Two stores, walked through side by side."""

    source: Place
    target: Place
    identity: str
    """Of the source."""
    run: str
    """Tells this run from others of the same copy."""
    progress: Progress

    async def note(self, verb: str, *, at: Instant, who: str, facts: Mapping[str, object]) -> None:
        """Say in the target how far it is."""
        mark = copying.mark(self.identity, verb=verb, at=at, who=who, facts=facts)
        await self.target.store.exchange(Kind.AUDIT, [mark.key], [mark])

    async def check_alone(self) -> None:
        """Raise `CopyRefused` if somebody else is at the target."""
        marks = await self.target.store.entries(copying.MARKS, limit=_ALL)
        copying.check_run(marks, source=self.identity, run=self.run)
        await _no_workers(self.source, self.target)

    async def mend(self, kind: Kind, *, since: Instant) -> int:
        """Write what differs, and tell how many records that were; `since`: when the first run has begun."""
        written = 0
        async for part in _walk(self.source.store, kind):
            there = await self._there(kind, part)
            copying.check_untouched(kind, part.records, there, since=since)
            gone, put = copying.mending(part.records, there)
            if gone or put:
                await self.check_alone()
            for load in copying.loads(put):
                await self.target.store.exchange(kind, gone, load)
                gone = []
            written += len(put)
            self.progress(kind, len(part.records))
        return written

    async def compare(self, kind: Kind) -> Tally:
        """Count both sides; raises `CopyDiffers` unless they are the same."""
        ours, theirs = Tally(), Tally()
        async for part in _walk(self.source.store, kind):
            ours = ours.plus(part.records)
            theirs = theirs.plus(await self._there(kind, part))
            self.progress(kind, len(part.records))
        if ours != theirs:
            raise CopyDiffers(
                f"{kind} differ: the source has {ours.count:,} with the checksum {ours.shown}, the copy has "
                f"{theirs.count:,} with {theirs.shown}; {_AGAIN}"
            )
        return ours

    async def _there(self, kind: Kind, part: _Stretch) -> list[Whole]:
        found = await self.target.store.stretch(kind, after=part.after, until=part.until, limit=_ALL)
        own = copying.mark_of(self.identity)
        return [record for record in found if record.key != own]


async def _walk(store: Store, kind: Kind) -> AsyncIterator[_Stretch]:
    """Yield all records of a kind by key, a few at a time if they are heavy."""
    after, most, heavy = "", 0, 0
    while True:
        most = copying.next_stretch(most, heavy)
        records = await store.stretch(kind, after=after, until=LAST_KEY, limit=most)
        is_last = len(records) < most
        until = LAST_KEY if is_last else records[-1].key
        yield _Stretch(after, until, records)
        if is_last:
            return
        after, heavy = until, copying.weight(records)
