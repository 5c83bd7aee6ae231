"""How a worker notices what concerns it: by hints, by what heartbeats find, and by looking while hints are missing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from duetime.model.job import Token
from duetime.model.time import Instant
from duetime.runtime.claiming.fetcher import Fetcher
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.service import POLL_CHANGES, SMALL_FLEET, FleetPacing, Service, ServiceHealth
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.runtime.upkeep.janitor import Janitor
from duetime.stores.base import Hint, Pulse, Store

_FIRST_LOOK_DELAY = 0.01
"""Seconds after which a vague hint is looked into: it is mostly about a job, which comes first."""
_VAGUE_PAUSE = 0.05
"""Seconds in which vague hints are answered by one look."""
_LONGEST_VAGUE_PAUSE = 1.0
"""The same in a large fleet, where every worker gives such hints to every other."""
_CHECK_PAUSE = 10.0
"""Seconds after which it is asked again whether hints arrive."""


class HintListener(Service):
    """Passes hints on for as long as the worker lives."""

    name = "hint listener"
    finishes_round = False

    def __init__(self, store: Store, health: ServiceHealth, on_hint: Callable[[Hint], None]) -> None:
        super().__init__(store, health)
        self._on_hint = on_hint

    async def round(self) -> float | None:
        """Listen until the store has no more hints."""
        async for hint in self._store.wakeups():
            self._on_hint(hint)
        return 1.0


class ChangeWatch(Service):
    """Looks when a hint does not say what has changed, and while the hints of other processes do not arrive.

    A vague hint makes it look for jobs at once and for everything else soon after; in a large fleet, for both together
    and less often. While hints are missing, it looks for requests to this worker and for changed schedules; the fetcher
    looks for jobs by itself.
    """

    name = "change watch"

    def __init__(
        self,
        store: Store,
        health: ServiceHealth,
        *,
        fleet: FleetPacing,
        look_for_jobs: Callable[[], None],
        look_for_workers: Callable[[], None],
        look_for_changes: Callable[[], None],
    ) -> None:
        super().__init__(store, health)
        self._fleet = fleet
        self._look_for_jobs = look_for_jobs
        self._look_for_workers = look_for_workers
        self._look_for_changes = look_for_changes
        self._loop = asyncio.get_running_loop()
        self._hinted = self._missing = False
        self._looked = 0.0

    def take_hint(self) -> None:
        """Look, if not at once then together with the next vague hints that come."""
        beyond = self._fleet.workers - SMALL_FLEET
        if beyond <= 0:
            self._look_for_jobs()
        if not self._hinted:
            self._hinted = True
            pause = min(_LONGEST_VAGUE_PAUSE, _VAGUE_PAUSE * max(1, beyond))
            self.wakeup.set_after(max(_FIRST_LOOK_DELAY, self._looked + pause - self._loop.time()))

    async def round(self) -> float | None:
        """Look if there was a hint, or if hints are missing; if they have just stopped, they may be about to go on."""
        was_missing, self._missing = self._missing, not self._store.hears_others
        if self._hinted:
            if self._fleet.workers > SMALL_FLEET:
                self._look_for_jobs()
            self._look_for_workers()
            self._looked, self._hinted = self._loop.time(), False
            self._look_for_changes()
        elif self._missing and was_missing:
            self._look_for_changes()
        return self._fleet.pause(POLL_CHANGES) if self._missing else _CHECK_PAUSE * random.uniform(0.8, 1.2)


class PulseRouter:
    """Tells each service what a heartbeat has found for it."""

    def __init__(
        self,
        *,
        fleet: FleetPacing,
        dispatcher: Dispatcher,
        fetcher: Fetcher,
        firer: ScheduleFirer,
        janitor: Janitor,
    ) -> None:
        self._fleet = fleet
        self._dispatcher = dispatcher
        self._fetcher = fetcher
        self._firer = firer
        self._janitor = janitor
        self._known: tuple[int, Instant] | None = None
        """How many workers live, and when the last of them was started."""
        self._strays: frozenset[Token] = frozenset()

    def take_in(self, pulse: Pulse, *, registered_at: Instant) -> None:
        """Act on an answer to a heartbeat of the worker that was registered at this instant."""
        self._recall_strays(pulse.held)
        if pulse.workers:
            self._fleet.workers = pulse.workers
            self._janitor.count_again()
            before, self._known = self._known, (pulse.workers, pulse.newest)
            # Workers that came before this one are known at first.
            if self._known != before and (before is not None or pulse.newest > registered_at):
                self._janitor.look_soon()
        if pulse.lease_ends is not None:
            self._janitor.expect_end_of_lease(pulse.lease_ends - pulse.now)
        if pulse.limited:
            self._fetcher.take_hint(Hint("limits"))
        if pulse.sight is None:
            return
        if pulse.sight.due_at is not None:
            self._fetcher.expect(pulse.sight.due_at - pulse.now)
        self._firer.expect(pulse.sight, pulse.now)
        if pulse.sight.orphans:
            self._janitor.sweep_soon()

    def _recall_strays(self, held: frozenset[Token]) -> None:
        """Take up claims the store has under this worker that it does not know of."""
        strays = frozenset(t for t in self._dispatcher.unknown(held) if not self._fetcher.holds(t))
        # Seen at two pulses, it is not one whose outcome was being written while the store was asked.
        self._janitor.take_strays(self._fetcher.recall(strays & self._strays))
        self._strays = strays
