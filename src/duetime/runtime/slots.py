"""How many jobs may run at once, in all and per queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class Slots:
    """Counts what runs against the limits of this worker."""

    def __init__(self, total: int, limits: Mapping[str, int | None]) -> None:
        self.total = total
        self._limits = {queue: limit for queue, limit in limits.items() if limit is not None}
        self._taken = 0
        self._by_queue: Counter[str] = Counter()

    @property
    def free(self) -> int:
        """How many more jobs may start."""
        return self.total - self._taken

    @property
    def taken(self) -> int:
        """How many jobs run."""
        return self._taken

    def room(self, queue: str) -> int:
        """How many more jobs of a queue may start."""
        limit = self._limits.get(queue)
        return self.free if limit is None else min(self.free, limit - self._by_queue[queue])

    def share(self, queue: str) -> int:
        """How many jobs of a queue may be held for slots to come."""
        return self._limits.get(queue, self.total + self._by_queue[queue]) - self._by_queue[queue]

    def take(self, queue: str) -> None:
        """Fill a slot."""
        self._taken += 1
        self._by_queue[queue] += 1

    def give_back(self, queue: str) -> None:
        """Free a slot."""
        self._taken -= 1
        self._by_queue[queue] -= 1
