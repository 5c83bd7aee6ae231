"""Rescues the jobs of dead workers and prunes old records.

There are two proofs of death: the lease is over, or a process of the same host is seen to be gone. Nothing else is one:
a worker whose connections were lost may run its jobs for as long as its lease lasts.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from duetime.model.ids import new_token
from duetime.model.job import JobId, Token
from duetime.model.outcome import Crashed
from duetime.model.retention import Retention
from duetime.model.text import counted, short_list
from duetime.model.time import SECOND, Micros
from duetime.model.worker import WorkerId
from duetime.runtime.identity import is_gone
from duetime.runtime.pacing import FOLD, PRUNE, WATCH_PROCESSES, sweep_interval
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.service import Service, WorkerContext
from duetime.runtime.settling.statistics import fold
from duetime.runtime.store_clock import monotonic
from duetime.stores.base import OrphanedJob, PeerWorker

log = logging.getLogger("duetime.worker")

_DEATH_CHECK_SPAN = 1.0
"""Seconds within which each worker looks after a process has ended that it watched."""
_PAST_LEASE = 0.1
"""Seconds between the end of a lease, as the store's last answer lets us expect it, and a look."""
_LEASE_END_SPACING = 0.01
"""Seconds between the looks of all workers at a lease that ends, on average."""
_LONGEST_LEASE_END_WAIT = 2.0
"""Seconds within which each has looked: most of the others may be dead, too."""
_PRUNE_AGAIN = 0.8
"""Seconds before the next stretches are looked at while there is much to remove."""
_PRUNE_STRETCHES = 20
"""How many stretches of jobs are looked at in one go; the next goes on from there."""
_FOLDS = 5
"""How many steps of merging statistics are done in one go."""
_NEVER: Final[Micros] = 2**62
_PRUNE_MAX = 1_000
"""After how many removed records others get a turn."""


class Janitor(Service):
    """Any worker may rescue, at any time; there is no leader."""

    name = "janitor"

    def __init__(
        self,
        context: WorkerContext,
        *,
        dispatcher: Dispatcher,
        limits_in_use: Callable[[], bool] = bool,
        watched: bool = False,
    ) -> None:
        """`watched`: heartbeats look for what there is to sweep, and tell by `sweep_soon`."""
        super().__init__(context.store, context.health)
        self._identity = context.identity
        self._options = context.options
        self._time = context.time
        self._fleet = context.fleet
        self._dispatcher = dispatcher
        self._sweeps = sweep_interval(self._options.lease / SECOND)
        # A lease is renewed when a third of it is over: one that is half over is late, and seen before it ends.
        self._soon = self._options.lease // 2
        self._pruned_through: JobId = ""
        self._limits_in_use = limits_in_use
        self._watched = watched
        self._next_sweep = 0
        self._sweep_pause = 0.0
        self._next_fold = _NEVER
        # Not at the start, when there are jobs to see to.
        self._next_prune = _from_now(PRUNE.alone * random.uniform(0.1, 0.2))
        self._neighbours = ProcessWatcher(self._look_after_an_end)
        self._end_of_lease: asyncio.TimerHandle | None = None
        self._strays: frozenset[Token] = frozenset()

    def take_strays(self, strays: frozenset[Token]) -> None:
        """Rescue, from this very worker, claims that it holds without knowing why: no one else would while it lives.

        The answer to a rescue may have been lost, or a store that was restored may have brought a settled claim back.
        """
        self._strays |= strays
        if strays:
            self.wakeup.set()

    def look_soon(self) -> None:
        """Get to know the workers anew, because there may be others."""
        # Of many, it is enough that one gets to know the new one soon.
        self.wakeup.set_after(random.uniform(0, self._fleet.share(WATCH_PROCESSES)))

    def sweep_soon(self) -> None:
        """Sweep, because a heartbeat has seen that there is something to rescue."""
        self._next_sweep = 0
        self._look_after_an_end()

    def expect_end_of_lease(self, left: Micros) -> None:
        """Look, in turn with all workers, when the first lease of the others ends; a later answer replaces this one."""
        if self._end_of_lease is not None:
            self._end_of_lease.cancel()
        turn = self._fleet.wait(spacing=_LEASE_END_SPACING, at_most=_LONGEST_LEASE_END_WAIT)
        wait = max(0, left) / SECOND + _PAST_LEASE + turn
        self._end_of_lease = asyncio.get_running_loop().call_later(wait, self.wakeup.set)

    def count_again(self) -> None:
        """Look and sweep at once if so few workers are left that they were to do it far more often."""
        if self._fleet.share(self._sweeps) * 2 < self._sweep_pause:
            self._next_sweep = 0
            self.wakeup.set()

    def fold_soon(self) -> None:
        """Merge statistics before long, because there are new ones."""
        if self._next_fold == _NEVER:
            pause = self._fleet.pause(FOLD)
            self._next_fold = _from_now(pause)
            self.wakeup.set_after(pause)

    async def stop(self) -> None:
        """End, and stop watching processes."""
        await super().stop()
        if self._end_of_lease is not None:
            self._end_of_lease.cancel()
        self._neighbours.close()

    async def round(self) -> float | None:
        """Look for dead workers; sweep when one was found or the time has come."""
        info = self._identity.info
        peers = await self._store.peers(info.id, info.host_key, soon=self._soon)
        gone = [p.id for p in peers if p.same_host and is_gone(p.pid, p.pid_started)]
        if gone:
            _log_deaths(await self._store.bury(gone), "whose process is gone")
        over = any(peer.lease_left < 0 for peer in peers)
        if over and (later := [peer.lease_left for peer in peers if peer.lease_left >= 0]):
            # Those that died with it are next, maybe long before a heartbeat tells.
            self.expect_end_of_lease(min(later))
        await self._settle_strays()
        if gone or over or monotonic() >= self._next_sweep:
            self._sweep_pause = self._fleet.pause(self._sweeps)
            self._next_sweep = _from_now(self._sweep_pause)
            await self._rescue()
        if monotonic() >= self._next_fold:
            self._next_fold = _from_now(_PRUNE_AGAIN) if await self._fold() else _NEVER
        if monotonic() >= self._next_prune:
            await self._prune()
        return self._until_next_look(peers)

    def _until_next_look(self, peers: Sequence[PeerWorker]) -> float:
        next_upkeep = min(self._next_fold, self._next_prune)
        if not self._watched:
            next_upkeep = min(next_upkeep, self._next_sweep)
        upkeep = max(0.0, (next_upkeep - monotonic()) / SECOND)
        near = [WatchedProcess(peer.pid, peer.pid_started) for peer in peers if peer.same_host]
        if self._neighbours.watch(near) and self._store.hears_others:
            # This worker is told when one of them ends or another one starts.
            return upkeep
        # All workers of a host see the same, and take turns.
        return min(upkeep, self._fleet.pause(WATCH_PROCESSES, among=1 + len(near)))

    def _look_after_an_end(self) -> None:
        # The first worker to look buries it; the others find nothing to do.
        self.wakeup.set_after(self._fleet.wait(at_most=_DEATH_CHECK_SPAN))

    async def _rescue(self) -> None:
        dead, orphans = await self._store.rescue(self._identity.info.id, new_token())
        _log_deaths(dead, "whose lease is over")
        if orphans:
            log.warning("took over %s of dead workers", counted(len(orphans), "job"))
        for orphan in orphans:
            self._settle(orphan)

    async def _settle_strays(self) -> None:
        for claim_id in {token.claim_id for token in self._strays}:
            found = await self._store.claims_under(self._identity.info.id, claim_id)
            claims = [claim for claim in found if claim.token in self._strays]
            started = {job.id: job.started_at for job in await self._store.get([c.job_id for c in claims])}
            for claim in claims:
                at = started.get(claim.job_id)
                self._settle(OrphanedJob(claim, self._identity.info.id, started_at=at, blamed=False))
        self._strays = frozenset()

    def _settle(self, orphan: OrphanedJob) -> None:
        outcome = Crashed(
            worker=orphan.worker,
            started=orphan.started_at is not None,
            blamed=orphan.blamed,
            suspected=orphan.suspected,
        )
        self._dispatcher.settle(orphan.claim, outcome, started_at=orphan.started_at)

    async def _fold(self) -> bool:
        """Merge what workers have counted; False when there is nothing more to merge until more is written."""
        for _ in range(_FOLDS):
            if not await fold(self._store):
                return False
        return True

    async def _prune(self) -> None:
        """Look at the next stretches of the table, and soon again while there is much to remove."""
        keep = self._options.retention
        before = None if keep is None else self._time.now() - keep
        retention = Retention(before=before, keep_per_schedule=self._options.keep_per_schedule)
        removed = 0
        for _ in range(_PRUNE_STRETCHES):
            pruned = await self._store.prune(retention, after=self._pruned_through)
            removed += pruned.jobs
            self._pruned_through = pruned.last or ""
            if pruned.last is None or removed >= _PRUNE_MAX:
                break
        if removed:
            log.info("removed the records of %s", counted(removed, "old job"))
        # Also what workers have left that are gone.
        await self._fold()
        await self._store.prune_statistics(self._time.now())
        if self._limits_in_use():
            await self._store.prune_gates()
        self._next_prune = _from_now(_PRUNE_AGAIN if removed >= _PRUNE_MAX else self._fleet.pause(PRUNE))


def _log_deaths(dead: Sequence[WorkerId], proof: str) -> None:
    """Log deaths; the store returns each of them to one worker only."""
    if dead:
        log.warning("found %s, %s: %s", counted(len(dead), "dead worker"), proof, short_list(dead))


def _from_now(seconds: float) -> Micros:
    return monotonic() + int(seconds * SECOND)


_MAX_WATCHED: Final = 64
"""How many processes are watched: each takes a descriptor, in every worker of the host."""


class WatchedProcess(NamedTuple):
    """A process, told by its start from a later one with its id."""

    pid: int
    started: str | None


class ProcessWatcher:
    """The processes of other workers, each watched through a descriptor that can be read once it has ended."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._watched: dict[WatchedProcess, int] = {}

    def watch(self, processes: Collection[WatchedProcess]) -> bool:
        """Watch these and no others; False when the end of one of them would not be noticed."""
        wanted = {process for process in processes if process.pid != os.getpid()}
        for process in self._watched.keys() - wanted:
            self._forget(process)
        for process in wanted - self._watched.keys():
            if len(self._watched) < _MAX_WATCHED:
                self._add(process)
        return wanted == self._watched.keys()

    def close(self) -> None:
        """Stop watching."""
        self.watch(())

    def _add(self, process: WatchedProcess) -> None:
        # A part of Linux, and of those Pythons only that were built where the kernel's headers had it.
        if not hasattr(os, "pidfd_open"):
            return
        try:
            descriptor = os.pidfd_open(process.pid)
        except OSError:
            # It has just ended, or this kernel, or what confines us, does not allow it.
            return
        self._loop.add_reader(descriptor, self._end, process)
        self._watched[process] = descriptor
        if is_gone(*process):
            # Its id may belong to another process by now, whose end says nothing.
            self._forget(process)

    def _end(self, process: WatchedProcess) -> None:
        self._forget(process)
        self._on_end()

    def _forget(self, process: WatchedProcess) -> None:
        descriptor = self._watched.pop(process)
        self._loop.remove_reader(descriptor)
        os.close(descriptor)
