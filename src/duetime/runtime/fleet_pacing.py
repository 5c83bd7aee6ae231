"""How workers space out what all of them do, so that the store is not asked more the more they are."""

from __future__ import annotations

import random

from duetime.model.time import Micros

SMALL_FLEET = 8
"""How many workers may ask at the same moment; waiting would only cost time."""
REQUEST_SPACING = 0.002
"""Seconds between the questions of a fleet, on average: what a store is asked does not grow with the number of workers."""

LONGEST_WAIT = 0.2
"""Seconds within which each has asked: maybe it is the only one that has a slot, or that works on a queue."""


class FleetPacing:
    """The living workers of a store, counted with every heartbeat."""

    def __init__(self) -> None:
        self.workers = 1

    def wait(self, *, spacing: float = REQUEST_SPACING, at_most: float = LONGEST_WAIT) -> float:
        """Return how many seconds to wait before asking what all the others are about to ask, too.

        Each draws from a span that grows with their number, so that the first one asks about as soon in a large fleet
        as in a small one, and the questions come one after the other.
        """
        return random.uniform(0, min(at_most, spacing * max(0, self.workers - SMALL_FLEET)))

    def share(self, pause: float, *, spacing: float, at_most: float, among: int | None = None) -> float:
        """Return how many seconds one worker pauses between looks of which any worker's will do.

        A few look as often as one alone would; of more, each looks the less often the more they are, so that the looks
        of all of them come `spacing` apart, on average. `among` says how many they are where that is not all workers.
        """
        return max(pause, min(at_most, spacing * (self.workers if among is None else among)))


def lease_horizon(lease: Micros) -> Micros:
    """Return how far ahead to look for leases that end, so that one is seen before it does.

    Workers renew a lease when a third of it is over. One that is half over is late, and the worker that looks has at
    least one more heartbeat before it ends.
    """
    return lease // 2


def sweep_pause(fleet: FleetPacing, lease: float) -> float:
    """Return how many seconds one worker pauses between looks for jobs of dead workers; `lease` is in seconds."""
    return fleet.share(lease / 3, spacing=lease / _SWEEPS_PER_LEASE, at_most=lease)


_SWEEPS_PER_LEASE = 30
"""How often all workers together sweep in the time of a lease; a few sweep less, and each sweeps once at least."""
