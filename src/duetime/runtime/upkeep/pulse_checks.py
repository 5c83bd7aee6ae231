"""What heartbeats look for on behalf of a worker's services, and which service is told what they have found."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from duetime.model.job import Token
from duetime.model.time import SECOND, Instant, Micros
from duetime.model.worker import WorkerInfo
from duetime.runtime.claiming.fetcher import Fetcher
from duetime.runtime.fleet_pacing import FleetPacing, lease_horizon, sweep_pause
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.store_clock import monotonic
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.runtime.upkeep.janitor import Janitor
from duetime.stores.base import Pulse, PulseQuery

LOOK_PAUSE = 10.0
"""Seconds within which somebody looks for what hints may have missed."""
_LONGEST_LOOK_PAUSE = 60.0
_LOOK_SPACING = 0.2
"""Seconds between the looks of all workers, on average."""

_NEAR_FUTURE: Micros = 2 * int(_LONGEST_LOOK_PAUSE) * SECOND
"""What comes within this time is told with every heartbeat; what comes later will be told in time."""


class PulseChecks:
    """Says what to look for, and whether the worker has to hear of an answer; both in the pulse's thread."""

    def __init__(
        self, *, crowd: FleetPacing, worker: WorkerInfo, lease: Micros, is_idle: Callable[[], bool]
    ) -> None:
        self._crowd = crowd
        self._worker = worker
        self._lease = lease / SECOND
        self._is_idle = is_idle
        self._looked: Micros | None = None
        self._swept: Micros | None = None
        self._told: tuple[int, Instant, bool] | None = None
        self._soon = lease_horizon(lease)

    def wants(self) -> PulseQuery | None:
        """Return what it is this worker's turn to look for; of a large fleet, not everybody looks every time."""
        looks = self._comes(
            self._looked, self._crowd.share(LOOK_PAUSE, spacing=_LOOK_SPACING, at_most=_LONGEST_LOOK_PAUSE)
        )
        sweeps = self._comes(self._swept, sweep_pause(self._crowd, self._lease))
        if not looks and not sweeps:
            return None
        return PulseQuery(
            queues=self._worker.queues if looks else (),
            tasks=self._worker.tasks if looks else (),
            schedules=looks and self._worker.fires,
            orphans=sweeps,
        )

    def is_news(self, pulse: Pulse, wants: PulseQuery | None) -> bool:
        """Take in an answer and tell whether the worker has to hear of it."""
        if wants is not None:
            self._looked = monotonic() if wants.queues or wants.schedules else self._looked
            self._swept = monotonic() if wants.orphans else self._swept
        told, self._told = self._told, (pulse.workers, pulse.newest, pulse.limited)
        return (
            bool(pulse.held)
            or pulse.limited
            or told != self._told
            or self._is_near(pulse)
            or not self._is_idle()
        )

    def _is_near(self, pulse: Pulse) -> bool:
        if pulse.lease_ends is not None and pulse.lease_ends <= pulse.now + self._soon:
            return True
        if pulse.sight is None:
            return False
        *moments, orphans = pulse.sight
        return orphans or any(at is not None and at <= pulse.now + _NEAR_FUTURE for at in moments)

    def _comes(self, last: Micros | None, pause: float) -> bool:
        # Heartbeats do not come to the millisecond: the one that is nearest counts.
        early = self._lease / 6
        return last is None or monotonic() >= last + int((pause - early) * SECOND)


_FleetState: TypeAlias = tuple[int, Instant]
"""How many workers live, and when the last of them was started."""


class PulseRouter:
    """Has each service look for what it is there for."""

    def __init__(
        self,
        *,
        crowd: FleetPacing,
        dispatcher: Dispatcher,
        fetcher: Fetcher,
        firer: ScheduleFirer,
        janitor: Janitor,
    ) -> None:
        self._crowd = crowd
        self._dispatcher = dispatcher
        self._fetcher = fetcher
        self._firer = firer
        self._janitor = janitor
        self._fleet: _FleetState | None = None
        self._strays: frozenset[Token] = frozenset()

    def take_in(self, pulse: Pulse, *, registered_at: Instant) -> None:
        """Act on an answer to a heartbeat of the worker that was registered at this instant."""
        self._recall_strays(pulse.held)
        if pulse.workers:
            self._crowd.workers = pulse.workers
            self._janitor.count_again()
            self._compare((pulse.workers, pulse.newest), registered_at)
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

    def _compare(self, fleet: _FleetState, registered_at: Instant) -> None:
        """Have the workers looked at anew if they are others than before; those that came earlier are known at first."""
        before, self._fleet = self._fleet, fleet
        if fleet != before and (before is not None or fleet[1] > registered_at):
            self._janitor.look_soon()

    def _recall_strays(self, held: frozenset[Token]) -> None:
        """Take up claims the store has under this worker that it does not know of."""
        strays = frozenset(t for t in self._dispatcher.unknown(held) if not self._fetcher.holds(t))
        # Seen at two pulses, it is not one whose outcome was being written while the store was asked.
        self._janitor.take_strays(self._fetcher.recall(strays & self._strays))
        self._strays = strays
