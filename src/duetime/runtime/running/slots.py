"""How many jobs may run at once: in all, per queue, and in child processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from duetime.model.job import Claim


class Slots:
    """Counts what runs against the limits of this worker."""

    def __init__(self, total: int, limits: Mapping[str, int | None], *, children: int = 0) -> None:
        self.total = total
        self.cpu_tasks: frozenset[str] = frozenset()
        """The tasks that need one of the children beside their slot."""
        self._children = children
        self._children_taken = 0
        self._limits = {queue: limit for queue, limit in limits.items() if limit is not None}
        self._taken = 0
        self._by_queue: Counter[str] = Counter()
        """What runs of the queues that have a limit."""

    @property
    def free(self) -> int:
        """How many more jobs may start."""
        return self.total - self._taken

    @property
    def only_total(self) -> bool:
        """Whether any free slot will do for any job."""
        return not self._limits and not self.cpu_tasks

    @property
    def taken(self) -> int:
        """How many jobs run."""
        return self._taken

    @property
    def children_free(self) -> int:
        """How many more jobs may start in child processes."""
        return min(self.free, self._children - self._children_taken)

    def fits(self, claim: Claim) -> bool:
        """Whether a claim may start now."""
        if self._taken >= self.total or (self._limits and self.room(claim.queue) <= 0):
            return False
        return claim.task not in self.cpu_tasks or self.children_free > 0

    def room(self, queue: str) -> int:
        """How many more jobs of a queue may start."""
        left = self.left(queue)
        return self.free if left is None else min(self.free, left)

    def full(self, queues: Iterable[str]) -> list[str]:
        """Return those of the queues of which no more jobs may start."""
        return [queue for queue in queues if self.room(queue) <= 0]

    def left(self, queue: str) -> int | None:
        """How many more jobs of a queue its own limit lets run; `None` where it has none."""
        limit = self._limits.get(queue)
        return None if limit is None else limit - self._by_queue[queue]

    def take(self, claim: Claim) -> bool:
        """Fill a slot; False when none is free for the claim."""
        if not self.fits(claim):
            return False
        self._taken += 1
        if claim.queue in self._limits:
            self._by_queue[claim.queue] += 1
        if claim.task in self.cpu_tasks:
            self._children_taken += 1
        return True

    def give_back(self, claim: Claim) -> None:
        """Free a slot."""
        self._taken -= 1
        if claim.queue in self._limits:
            self._by_queue[claim.queue] -= 1
        if claim.task in self.cpu_tasks:
            self._children_taken -= 1
