"""One lifecycle for every background loop: its wake-ups, how often it looks, its back-off after a failure, its health."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from duetime.errors import SchemaMismatch, StoreLost, StoreUnavailable, StoreUnusable
from duetime.model.text import counted
from duetime.runtime.error_text import describe_error
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.options import WorkerOptions
from duetime.runtime.running.handler import Handler
from duetime.runtime.store_clock import StoreClock
from duetime.stores.base import Store
from duetime.stores.base.backoff import backoff

log = logging.getLogger("duetime.worker")

_LAST_ROUND_TIMEOUT = 5.0
"""Seconds a service that is stopped may take to finish its round."""

DATABASE_DOWN: Final = (StoreUnavailable, StoreUnusable, SchemaMismatch)
"""Errors of the database as a whole, whatever was asked of it: the same is tried again until it is mended."""


class ServiceHealth:
    """Remembers which services are failing and the last error."""

    def __init__(self, on_lost: Callable[[StoreLost], object] | None = None) -> None:
        """Call `on_lost` when a service finds that its store is lost."""
        self._on_lost = on_lost
        self.failing: dict[str, str] = {}
        self.last_error: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether every service is well."""
        return not self.failing

    def failed(self, service: str, error: BaseException) -> None:
        """Note that a round failed."""
        self.last_error = self.failing[service] = f"{service}: {describe_error(error)}"
        if isinstance(error, StoreLost) and self._on_lost is not None:
            self._on_lost(error)

    def recovered(self, service: str) -> None:
        """Note that a round went well after failures."""
        self.failing.pop(service, None)


class Service:
    """Repeats `round()` until stopped; each round returns how many seconds to sleep, or `None` for a hint.

    A round that raises is reported and tried again with growing, jittered pauses: a service never dies.
    """

    name = "service"
    finishes_round = True
    """Whether a round is let finish when the service is stopped, so that no answer of the store is lost."""

    def __init__(self, store: Store, health: ServiceHealth) -> None:
        self.wakeup = Wakeup()
        self.stopping = False
        self.rounds_done = 0
        """How many rounds have gone well."""
        self._store = store
        self._health = health
        self._failing_pause = Wakeup()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._told: str | None = None

    async def round(self) -> float | None:
        """Do what there is to do and tell how long to sleep."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin; starting twice is harmless."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"duetime-{self.name}")

    async def stop(self) -> None:
        """End and wait for the end; stopping twice, or before the start, is harmless."""
        task, self._task = self._task, None
        if task is None:
            return
        self.stopping = True
        self.wakeup.set()
        self._failing_pause.set()
        if self.finishes_round:
            await asyncio.wait({task}, timeout=_LAST_ROUND_TIMEOUT)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _run(self) -> None:
        while not self.stopping:
            self.wakeup.clear()
            try:
                pause = await self.round()
            except Exception as error:  # noqa: BLE001 - a service outlives whatever its round raises
                # Hints do not cut this pause short: they would turn it into a busy loop.
                self._note_failure(error)
                self._failing_pause.clear()
                if not self.stopping:
                    await self._failing_pause.wait(backoff(self._failures))
                continue
            self.rounds_done += 1
            if self._failures:
                log.info("%s goes on after %s", self.name, counted(self._failures, "failure"))
                self._failures, self._told = 0, None
                self._health.recovered(self.name)
            if not self.stopping and (pause is None or pause > 0):
                await self.wakeup.wait(pause)

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        self._health.failed(self.name, error)
        # What the database says of itself is told when it changes, and its loss by the worker, which stops; anything
        # else is a defect and told with its traceback.
        if not isinstance(error, DATABASE_DOWN):
            log.error("%s failed; it will be tried again", self.name, exc_info=error)
        elif str(error) != self._told and not isinstance(error, StoreLost):
            log.warning("%s waits for the database: %s", self.name, error)
        self._told = str(error)


class Wakeup:
    """Lets one loop sleep until it is hinted or its time has come.

    Clear before looking, then wait: a hint that lands during the look is not lost.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.set: Callable[[], None] = self._event.set
        """Wakes the sleeper."""
        self._later: asyncio.TimerHandle | None = None

    def set_after(self, seconds: float) -> None:
        """Wake the sleeper after these seconds, or sooner if an earlier call said so."""
        if seconds <= 0:
            self.set()
            return
        loop = asyncio.get_running_loop()
        if self._later is not None:
            if self._later.when() <= loop.time() + seconds:
                return
            self._later.cancel()
        self._later = loop.call_later(seconds, self.set)

    def clear(self) -> None:
        """Forget earlier hints, also those that have not woken the sleeper yet."""
        self._event.clear()
        if self._later is not None:
            self._later.cancel()
            self._later = None

    async def wait(self, seconds: float | None) -> None:
        """Sleep until hinted, or for these seconds; `None` waits for a hint alone."""
        if seconds is not None:
            self.set_after(seconds)
        await self._event.wait()


class Interval(NamedTuple):
    """How often to look for what any worker would find: a few look as often as one, more of them take turns."""

    alone: float
    """Seconds between the looks of each of a few workers."""
    spacing: float
    """Seconds between the looks of all workers, on average, where there are many."""
    longest: float
    """Seconds between the looks of each in any case: it may be the only one on a queue, or the only one left."""


POLL_WITH_HINTS: Final = Interval(10.0, spacing=0.2, longest=60.0)
"""For jobs, while hints of other processes arrive and no heartbeat looks: only insurance."""
POLL_WITHOUT_HINTS: Final = Interval(0.25, spacing=0.01, longest=2.0)
"""For jobs, while they do not."""
POLL_SCHEDULES: Final = Interval(10.0, spacing=0.25, longest=60.0)
POLL_CHANGES: Final = Interval(1.0, spacing=0.01, longest=3.0)
"""For changed schedules and requests to this worker, while hints do not arrive."""
WATCH_PROCESSES: Final = Interval(0.8, spacing=0.2, longest=10.0)
"""For processes whose end no descriptor tells: a death may go unnoticed for two seconds. Most of many may be dead."""
PARK: Final = Interval(60.0, spacing=1.0, longest=180.0)
"""For schedules to park: it takes two looks of one worker."""
WATCH_QUEUES: Final = Interval(60.0, spacing=10.0, longest=600.0)
"""For due jobs that no worker takes."""
PRUNE: Final = Interval(600.0, spacing=20.0, longest=3600.0)
"""For old records: each worker goes through the table on its own, so that no record is put off for ever."""


def sweep_interval(lease: float) -> Interval:
    """Return how often to look for jobs of dead workers: each at least once in the time of a lease."""
    return Interval(lease / 3, spacing=lease / 30, longest=lease)


SMALL_FLEET = 8
"""How many workers may ask at the same moment; waiting would only cost time."""
REQUEST_SPACING = 0.002
"""Seconds between the requests of a fleet, on average: a store is not asked more often the more workers there are."""
LONGEST_WAIT = 0.2
"""Seconds within which each has asked: it may be the only one that has a slot, or that works on a queue."""


class FleetPacing:
    """Spaces out what all living workers of a store do; they are counted with every heartbeat."""

    def __init__(self) -> None:
        self.workers = 1

    def wait(self, *, spacing: float = REQUEST_SPACING, at_most: float = LONGEST_WAIT) -> float:
        """Return how many seconds to wait before asking what all other workers are about to ask, too.

        Each draws from a span that grows with their number: the first one asks as soon as in a small fleet.
        """
        return random.uniform(0, min(at_most, spacing * max(0, self.workers - SMALL_FLEET)))

    def share(self, interval: Interval, *, among: int | None = None) -> float:
        """Return how many seconds this worker pauses between looks; `among`: how many take turns, if not all workers."""
        workers = self.workers if among is None else among
        return max(interval.alone, min(interval.longest, interval.spacing * workers))

    def pause(self, interval: Interval, *, among: int | None = None) -> float:
        """Return the same, more or less, so that workers that were started together drift apart."""
        return self.share(interval, among=among) * random.uniform(0.8, 1.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """What the services of a worker share."""

    store: Store
    options: WorkerOptions
    handlers: Mapping[str, Handler]
    identity: WorkerIdentity
    time: StoreClock
    health: ServiceHealth
    fleet: FleetPacing
