"""Remembers how far a worker has come through a backlog, so that a claim need not walk over what was claimed before.

An index may keep the entries of jobs that were claimed until somebody cleans up, once a minute or so. A claim that begins
at the oldest due time walks over all of them: in a drain of a million jobs that is more than the claim itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from duetime.model.instants import Instant
from duetime.model.job import Claim
from duetime.stores.base import Demand

Floor: TypeAlias = tuple[str, int, Instant]
"""A queue, a priority, and the due time at which to begin."""

_LONG: Final = 1_000
"""From how many jobs on, claimed without a break, a backlog is worth remembering."""
_TRUSTED: Final = 1.0
"""For how many seconds a queue's floors hold: jobs that come to lie behind, such as those that go back, are found by the
first claim after this that takes from the queue."""


@dataclass(slots=True)
class _Backlog:
    """What claims of one kind have met since one of them came back with less than it had asked for."""

    taken: int = 0
    floors: dict[tuple[str, int], Instant] = field(default_factory=dict[tuple[str, int], Instant])
    trusted_until: dict[str, float] = field(default_factory=dict[str, float])
    """By queue, since a claim may be full before it comes to the next."""


class Backlogs:
    """The backlogs that this store's claims have met, by kind of claim."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._met: dict[object, _Backlog] = {}

    def floors(self, demand: Demand) -> list[Floor]:
        """Tell where a claim may begin; nowhere in particular, now and then and unless there is a long backlog."""
        backlog = self._met.get(_kind(demand))
        if backlog is None or backlog.taken < _LONG or demand.ahead:
            return []
        now, until = self._clock(), backlog.trusted_until
        return [
            (*place, due_at) for place, due_at in backlog.floors.items() if now < until.get(place[0], 0.0)
        ]

    def note(self, demand: Demand, claims: Sequence[Claim], *, floors: Sequence[Floor]) -> None:
        """Learn from the answer to a claim, in the order of its queues, that began at these floors."""
        if demand.ahead:
            return
        if len(claims) < demand.limit:
            # The backlog has come to an end, or what is left of it lies behind.
            self._met.pop(_kind(demand), None)
            return
        backlog = self._met.setdefault(_kind(demand), _Backlog())
        until = self._clock() + _TRUSTED
        seen = _reached(demand, claims[-1].queue) - {queue for queue, _, _ in floors}
        backlog.trusted_until.update(dict.fromkeys(seen, until))
        backlog.taken += len(claims)
        # The first of a batch rather than its last: what goes back is soon met again.
        backlog.floors.update({(claim.queue, claim.priority): claim.due_at for claim in reversed(claims)})


def _reached(demand: Demand, last: str) -> set[str]:
    names = [queue for queue, _ in demand.queues]
    return set(names[: names.index(last) + 1])


def _kind(demand: Demand) -> object:
    # Each kind leaves other jobs behind.
    return demand.worker, demand.tasks, demand.unstarted, demand.below_priority
