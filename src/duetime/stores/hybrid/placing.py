"""Decides in which store new jobs are stored, also while one takes none, and sees to it that none is stored in two."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Final

from duetime.errors import SchemaMismatch, StoreError, StoreUnavailable, StoreUnusable
from duetime.model.ids import new_job_id
from duetime.model.job import JobId, NewJob, Token
from duetime.model.limits import UNLIMITED
from duetime.model.reports import Progress
from duetime.model.routes import Routes, Tier, tier_of
from duetime.model.stored.jobs import LiveWorkers
from duetime.model.time import Clock
from duetime.stores.base import Store
from duetime.stores.base.backoff import backoff

log = logging.getLogger("duetime.store")

_LOOK_AGAIN: Final = 1.0
"""Seconds for which the last look at the queues counts, and the last answer of the near store."""
_LONGEST_LOOK: Final = 0.1
"""Seconds that an enqueue waits for a look at the queues; if far is silent, the one before counts."""
_MOST_REMEMBERED: Final = 10_000
"""Of how many jobs it is remembered where they were sent."""
_DOWN: Final = (StoreUnavailable, StoreUnusable, SchemaMismatch)


class JobPlaces:
    """Chooses a store for new jobs."""

    def __init__(
        self, tiers: Mapping[Tier, Store], routes: Routes, *, clock: Clock, far_queues: Collection[str]
    ) -> None:
        self.routes = routes
        self._tiers = tiers
        self._clock = clock
        self._near = NearWatch(tiers[Tier.NEAR]) if Tier.NEAR in tiers else None
        self.far_queues = FarQueues(tiers[Tier.FAR], frozenset(far_queues))
        self._sent: dict[JobId, Tier] = {}
        """Where the last jobs were sent. A call that is made again, perhaps since its answer was lost, goes there, too."""

    async def close(self) -> None:
        """End what goes on in the background."""
        await self.far_queues.close()
        if self._near is not None:
            await self._near.close()

    async def choose(self, jobs: Sequence[NewJob]) -> Tier:
        """Return where jobs go that are stored together."""
        if sent := [self._sent[job.id] for job in jobs if job.id in self._sent]:
            return max(sent)
        now = self._clock.now()
        tier = tier_of(jobs, self.routes, now=now, far_queues=())
        if tier is not Tier.FAR:
            tier = tier_of(jobs, self.routes, now=now, far_queues=await self.far_queues.names())
        if tier is Tier.MEMORY and not await self._run_here(jobs):
            lasting = [route for route in self.routes if route.tier is not Tier.MEMORY]
            tier = tier_of(jobs, lasting, now=now, far_queues=())
        if tier is Tier.NEAR and self._near is not None and not await self._near.takes_jobs():
            tier = Tier.FAR
        return tier

    @contextlib.contextmanager
    def storing(self, jobs: Sequence[NewJob], tier: Tier) -> Generator[None]:
        """Within it, jobs are sent to a tier; if that fails, the tier is asked before others are."""
        self._sent |= dict.fromkeys((job.id for job in jobs), tier)
        while len(self._sent) > _MOST_REMEMBERED:
            del self._sent[next(iter(self._sent))]
        try:
            yield
        except _DOWN as error:
            if tier is Tier.NEAR and self._near is not None:
                self._near.lose(error)
            raise
        if tier is Tier.NEAR and self._near is not None:
            self._near.trust()

    async def _run_here(self, jobs: Sequence[NewJob]) -> bool:
        """Whether a worker of this very process runs such jobs: no other one sees the memory that they would be in."""
        fleet = LiveWorkers.of(await self._tiers[Tier.MEMORY].workers())
        return all(any(job.task in worker.tasks for worker in fleet.serving(job.queue)) for job in jobs)


class FarQueues:
    """The queues whose jobs all go far: those that were named, and those that are paused or have a limit."""

    def __init__(self, far: Store, named: frozenset[str]) -> None:
        self._far = far
        self._named = self._names = named
        self._look: asyncio.Task[None] | None = None
        self._look_from = 0.0

    async def names(self) -> frozenset[str]:
        """Return them as they were a second ago at most, unless far does not answer."""
        if time.monotonic() >= self._look_from and (self._look is None or self._look.done()):
            self._look_from = time.monotonic() + _LOOK_AGAIN
            self._look = asyncio.create_task(self.look(), name="duetime-far-queues")
        if self._look is not None and not self._look.done():
            await asyncio.wait({self._look}, timeout=_LONGEST_LOOK)
        return self._names

    async def look(self) -> None:
        """Ask far."""
        # The worker of far tells of an outage, and so do enqueues that go there.
        with contextlib.suppress(StoreError):
            queues = await self._far.queues()
            told = {queue.name for queue in queues if queue.paused_at is not None or queue.limit != UNLIMITED}
            self._names = self._named | told

    async def close(self) -> None:
        """Look no more."""
        await _end(self._look)


class NearWatch:
    """Knows whether the near store takes jobs: one that has just answered does, any other is asked first."""

    def __init__(self, near: Store) -> None:
        self._near = near
        self._asking = asyncio.Lock()
        self._trusted_until = 0.0
        self._return: asyncio.Task[None] | None = None
        """Waits for the end of an outage."""

    async def takes_jobs(self) -> bool:
        """Return whether it does; what was not sent there can safely go far."""
        async with self._asking:
            if self._return is None and time.monotonic() >= self._trusted_until:
                try:
                    await self._probe()
                except _DOWN as error:
                    self.lose(error)
                else:
                    self.trust()
        return self._return is None

    def trust(self) -> None:
        """Take note that it has just answered."""
        self._trusted_until = time.monotonic() + _LOOK_AGAIN

    def lose(self, error: Exception) -> None:
        """Send nothing more there until it answers again."""
        if self._return is None:
            log.warning("the near store takes no jobs, and until it does all go far: %s", error)
            self._return = asyncio.create_task(self._wait_for_return(), name="duetime-near-return")

    async def close(self) -> None:
        """Wait for nothing more."""
        await _end(self._return)

    async def _wait_for_return(self) -> None:
        for failures in itertools.count():
            await asyncio.sleep(backoff(failures))
            with contextlib.suppress(*_DOWN):
                await self._probe()
                break
        self._return = None
        self.trust()
        log.info("the near store takes jobs again")

    async def _probe(self) -> None:
        """Report the progress of a job that there is not: a store that is full, or a replica, can still be read."""
        await self._near.report([Progress(Token(new_job_id(), 0, ""), 0.0)], [])


async def _end(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
