"""How often workers look for what no hint has told, and how a fleet of them spaces out its requests."""

from __future__ import annotations

import random
from typing import Final, NamedTuple


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

FOLD: Final = Interval(20.0, spacing=5.0, longest=600.0)
"""For statistics to merge, once a worker has written some."""


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
