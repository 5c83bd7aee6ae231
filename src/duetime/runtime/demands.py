"""How many jobs of which tasks and queues a worker asks for, by the room it has for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from duetime.model.ids import new_token
from duetime.model.instants import Micros
from duetime.model.limit import Gate
from duetime.runtime.handler import Handler
from duetime.runtime.hold import Hold
from duetime.runtime.identity import Identity
from duetime.runtime.lanes import Lane, lanes
from duetime.runtime.slots import Slots
from duetime.stores.base import Demand


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Words the questions of a worker to its store."""

    identity: Identity
    handlers: Mapping[str, Handler]
    queues: tuple[str, ...]
    slots: Slots
    hold: Hold
    limits: Mapping[str, Gate]

    def lanes(self) -> Sequence[Lane]:
        """Return the tasks to ask for together."""
        return lanes(self.handlers, self.slots)

    def room(self, lane: Lane) -> int:
        """How many jobs of a lane may start now."""
        return self.slots.children_free if lane.in_child else self.slots.free

    def share(self, lane: Lane) -> int:
        """How many claims of a lane may be held for slots to come: children are not waited for."""
        if not lane.in_child:
            return max(self.slots.total, self.hold.room)
        return self.slots.children_free - self.hold.count(lambda claim: claim.task in self.slots.cpu_tasks)

    def may_hold(self, queue: str, most: int) -> int:
        """How many of so many jobs of a queue may be held for slots to come, beside those that are."""
        left = self.slots.left(queue)
        return most if left is None else min(most, left - self.hold.count(lambda claim: claim.queue == queue))

    def now(self, lane: Lane, limit: int, *, below_priority: int = 10) -> Demand:
        """Ask for due jobs that start at once."""
        return self._demand(lane, limit, self.slots.room, below_priority=below_priority)

    def in_advance(self, lane: Lane, limit: int) -> Demand:
        """Ask for due jobs that wait here for slots to come."""
        return self._demand(lane, limit, partial(self.may_hold, most=limit), unstarted=True)

    def ahead(self, lane: Lane, limit: int, *, window: Micros) -> Demand:
        """Ask for jobs that fall due within the window."""
        return self._demand(lane, limit, partial(self.may_hold, most=limit), ahead=window)

    def _demand(
        self,
        lane: Lane,
        limit: int,
        room: Callable[[str], int],
        *,
        ahead: Micros = 0,
        unstarted: bool = False,
        below_priority: int = 10,
    ) -> Demand:
        return Demand(
            worker=self.identity.worker_id,
            claim_id=new_token(),
            queues=tuple((queue, min(limit, n)) for queue in self._shuffled() if (n := room(queue)) > 0),
            limit=limit,
            tasks=lane.tasks,
            ahead=ahead,
            unstarted=unstarted,
            below_priority=below_priority,
            limits=self.limits,
        )

    def _shuffled(self) -> Sequence[str]:
        """The queues in random order: a full one must not starve the others."""
        return random.sample(self.queues, len(self.queues)) if len(self.queues) > 1 else self.queues
