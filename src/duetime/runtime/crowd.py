"""How many workers there are, and how long each waits so that the store is not asked more the more they are."""

from __future__ import annotations

import random

FEW = 8
"""So many workers may ask at the same moment; waiting would only cost time."""
SPACING = 0.002
"""Seconds between the questions of a crowd, on average: what a store is asked does not grow with the number of workers."""

LATEST = 0.2
"""Seconds within which each has asked: maybe it is the only one that has a slot, or that works on a queue."""


class Crowd:
    """The living workers of a store, counted with every heartbeat."""

    def __init__(self) -> None:
        self.workers = 1

    def wait(self, *, spacing: float = SPACING, at_most: float = LATEST) -> float:
        """Return how many seconds to wait before asking what all the others are about to ask, too.

        Each draws from a span that grows with their number, so that the first one asks about as soon in a large crowd
        as in a small one, and the questions come one after the other.
        """
        return random.uniform(0, min(at_most, spacing * max(0, self.workers - FEW)))

    def share(self, pause: float, *, spacing: float, at_most: float, among: int | None = None) -> float:
        """Return how many seconds one worker pauses between looks of which any worker's will do.

        A few look as often as one alone would; of more, each looks the less often the more they are, so that the looks
        of all of them come `spacing` apart, on average. `among` says how many they are where that is not all workers.
        """
        return max(pause, min(at_most, spacing * (self.workers if among is None else among)))
