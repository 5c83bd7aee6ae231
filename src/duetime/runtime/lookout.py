"""What heartbeats look for on behalf of a worker's services, so that an idle worker sends nothing else."""

from __future__ import annotations

from collections.abc import Callable

from duetime.model.instants import SECOND, Instant, Micros
from duetime.model.worker import WorkerInfo
from duetime.runtime.crowd import Crowd
from duetime.runtime.timekeeper import monotonic
from duetime.stores.base import Pulse, Wants

LOOK = 10.0
"""Seconds within which somebody looks for what hints may have missed."""
_LONGEST_LOOK = 60.0
_SPACING = 0.2
"""Seconds between the looks of all workers, on average."""
_SWEEPS = 30
"""How often all workers together sweep in the time of a lease; a few sweep less, and each sweeps once at least."""
_SOON: Micros = 2 * int(_LONGEST_LOOK) * SECOND
"""What comes within this time is told with every heartbeat; what comes later will be told in time."""


def soon(lease: Micros) -> Micros:
    """Return how far ahead to look for leases that end, so that one is seen before it does.

    Workers renew a lease when a third of it is over. One that is half over is late, and the worker that looks has at
    least one more heartbeat before it ends.
    """
    return lease // 2


class Lookout:
    """Says what to look for, and whether the worker has to hear of an answer; both in the pulse's thread."""

    def __init__(
        self, *, crowd: Crowd, worker: WorkerInfo, lease: Micros, is_idle: Callable[[], bool]
    ) -> None:
        self._crowd = crowd
        self._worker = worker
        self._lease = lease / SECOND
        self._is_idle = is_idle
        self._looked: Micros | None = None
        self._swept: Micros | None = None
        self._told: tuple[int, Instant, bool] | None = None
        self._soon = soon(lease)

    def wants(self) -> Wants | None:
        """Return what it is this worker's turn to look for; of a large fleet, not everybody looks every time."""
        looks = self._comes(self._looked, self._crowd.share(LOOK, spacing=_SPACING, at_most=_LONGEST_LOOK))
        sweeps = self._comes(self._swept, between_sweeps(self._crowd, self._lease))
        if not looks and not sweeps:
            return None
        return Wants(
            queues=self._worker.queues if looks else (),
            tasks=self._worker.tasks if looks else (),
            schedules=looks and self._worker.fires,
            orphans=sweeps,
        )

    def is_news(self, pulse: Pulse, wants: Wants | None) -> bool:
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
        return orphans or any(at is not None and at <= pulse.now + _SOON for at in moments)

    def _comes(self, last: Micros | None, pause: float) -> bool:
        # Heartbeats do not come to the millisecond: the one that is nearest counts.
        early = self._lease / 6
        return last is None or monotonic() >= last + int((pause - early) * SECOND)


def between_sweeps(crowd: Crowd, lease: float) -> float:
    """Return how many seconds one worker pauses between looks for jobs of dead workers; `lease` is in seconds."""
    return crowd.share(lease / 3, spacing=lease / _SWEEPS, at_most=lease)
