"""How a worker notices what concerns it: by hints, by looks with its heartbeats, and by polling while hints are missing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from duetime.model.job import Token
from duetime.model.time import SECOND, Instant, Micros
from duetime.model.worker import WorkerInfo
from duetime.runtime.claiming.fetcher import Fetcher
from duetime.runtime.fleet_pacing import SMALL_FLEET, FleetPacing, lease_horizon, sweep_pause
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.service import Service, ServiceHealth
from duetime.runtime.store_clock import monotonic
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.runtime.upkeep.janitor import Janitor
from duetime.stores.base import Hint, Pulse, PulseQuery, Store


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


_FIRST_LOOK_DELAY = 0.01
"""Seconds after which a vague hint is looked into: it is mostly about a job, which comes first."""
_VAGUE_PAUSE = 0.05
"""Seconds in which vague hints are answered by one look."""
_LONGEST_VAGUE_PAUSE = 1.0
"""The same in a large fleet, where every worker gives such hints to every other."""


class VagueHints:
    """Answers hints that do not say what has changed: jobs are looked for at once, everything else soon after.

    In a large fleet both are looked for together, and less often.
    """

    def __init__(
        self, fleet: FleetPacing, *, look_for_jobs: Callable[[], None], look_around: Callable[[], None]
    ) -> None:
        self._fleet = fleet
        self._look_for_jobs = look_for_jobs
        self._look_around = look_around
        self._loop = asyncio.get_running_loop()
        self._looking: asyncio.TimerHandle | None = None
        self._looked = 0.0

    def take_hint(self) -> None:
        """Look, if not at once then together with the next ones that come."""
        beyond = self._fleet.workers - SMALL_FLEET
        if beyond <= 0:
            self._look_for_jobs()
        if self._looking is None:
            pause = min(_LONGEST_VAGUE_PAUSE, _VAGUE_PAUSE * max(1, beyond))
            wait = max(_FIRST_LOOK_DELAY, self._looked + pause - self._loop.time())
            self._looking = self._loop.call_later(wait, self._look)

    def _look(self) -> None:
        self._looking = None
        self._looked = self._loop.time()
        if self._fleet.workers > SMALL_FLEET:
            self._look_for_jobs()
        self._look_around()


FALLBACK_PAUSE = 1.0
"""Seconds between looks for what others would have hinted at."""
_LONGEST_FALLBACK_PAUSE = 3.0
"""The same in a large fleet."""
_FALLBACK_SPACING = 0.01
"""Seconds between the looks of all workers, on average."""
CHECK_PAUSE = 10.0
"""Seconds after which it is asked again whether hints arrive."""


class HintFallback(Service):
    """Looks for requests to this worker and for changed schedules while hints do not arrive.

    New jobs are looked for by the fetcher.
    """

    name = "stand-in for hints"

    def __init__(
        self, store: Store, health: ServiceHealth, *, fleet: FleetPacing, look: Callable[[], None]
    ) -> None:
        super().__init__(store, health)
        self._fleet = fleet
        self._look = look
        self._missing = False

    async def round(self) -> float | None:
        """Look, unless hints arrive; if they have just stopped, they may be about to go on."""
        was_missing, self._missing = self._missing, not self._store.hears_others
        if self._missing and was_missing:
            self._look()
        pause = CHECK_PAUSE
        if self._missing:
            pause = self._fleet.share(
                FALLBACK_PAUSE, spacing=_FALLBACK_SPACING, at_most=_LONGEST_FALLBACK_PAUSE
            )
        return pause * random.uniform(0.8, 1.2)


_NEAR_FUTURE: Micros = 120 * SECOND
"""What comes within this time is told with every look; what comes later will be told in time."""


class PulseLooks:
    """Has heartbeats look for what hints may have missed, and leaves out news of nothing; both in the pulse's thread.

    Workers of a large fleet look in turn: each would find the same.
    """

    def __init__(
        self, *, fleet: FleetPacing, worker: WorkerInfo, lease: Micros, is_idle: Callable[[], bool]
    ) -> None:
        self._fleet = fleet
        self._everything = PulseQuery(
            queues=worker.queues, tasks=worker.tasks, schedules=worker.fires, orphans=True
        )
        self._lease = lease
        self._is_idle = is_idle
        self._looked: Micros | None = None
        self._told: tuple[int, Instant, bool] | None = None

    def wants(self) -> PulseQuery | None:
        """Return what to look for with this heartbeat, if it is this worker's turn."""
        # Heartbeats do not come to the millisecond: the one that is nearest counts.
        pause = sweep_pause(self._fleet, self._lease / SECOND) * SECOND - self._lease // 6
        early = self._looked is not None and monotonic() < self._looked + pause
        return None if early else self._everything

    def is_news(self, pulse: Pulse, wants: PulseQuery | None) -> bool:
        """Take in an answer and tell whether the worker has to be told."""
        if wants is not None:
            self._looked = monotonic()
        told, self._told = self._told, (pulse.workers, pulse.newest, pulse.limited)
        return (
            bool(pulse.held)
            or pulse.limited
            or told != self._told
            or self._is_near(pulse)
            or not self._is_idle()
        )

    def _is_near(self, pulse: Pulse) -> bool:
        if pulse.lease_ends is not None and pulse.lease_ends <= pulse.now + lease_horizon(self._lease):
            return True
        if pulse.sight is None:
            return False
        *moments, orphans = pulse.sight
        return orphans or any(at is not None and at <= pulse.now + _NEAR_FUTURE for at in moments)


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
            self._fetcher.learn_limits()
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
