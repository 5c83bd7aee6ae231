"""What the workers that are alive can do together: fire schedules, run jobs, run this task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from duetime.model.stored import StoredWorker


@dataclass(frozen=True, slots=True)
class Fleet:
    """The workers that are alive."""

    alive: tuple[StoredWorker, ...] = ()

    @classmethod
    def of(cls, workers: Iterable[StoredWorker]) -> Self:
        """Leave out those that have stopped or died."""
        return cls(tuple(worker for worker in workers if worker.state == "alive"))

    @property
    def fires(self) -> bool:
        """Whether one of them fires schedules."""
        return any(worker.fires for worker in self.alive)

    @property
    def queues(self) -> frozenset[str]:
        """The queues that they work on; empty when none of them runs jobs."""
        return frozenset(queue for worker in self.alive for queue in worker.queues)

    def serving(self, queue: str) -> list[StoredWorker]:
        """Return those that work on a queue."""
        return [worker for worker in self.alive if queue in worker.queues]

    def knows(self, task: str) -> bool | None:
        """Tell whether one of them can run a task; `None` when there is nobody who runs jobs, and so nobody to tell."""
        return any(task in worker.tasks for worker in self.alive) if self.queues else None
