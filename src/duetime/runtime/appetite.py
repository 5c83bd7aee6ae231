"""How many due jobs to take in advance of the slots that they will need."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.instants import MILLISECOND, SECOND, Micros
from duetime.model.job import Claim
from duetime.runtime.dispatcher import Dispatcher
from duetime.runtime.hold import Hold
from duetime.runtime.limited import LimitedTurns
from duetime.runtime.slots import Slots

_BRISK: Micros = 25 * MILLISECOND
"""Runs shorter than this on average make waiting for the next claim worth avoiding."""
_MOMENT: Micros = 50 * MILLISECOND
"""As many jobs are taken in advance as end in this time."""
_MOST_IN_ADVANCE = 1_000
_AGEING = 100_000
"""How much longer nothing may have ended than runs were apart, before it is doubted that they still would be so close."""


class Appetite:
    """Grows with the speed at which runs end; while they last long, due jobs are left to others."""

    def __init__(self, *, dispatcher: Dispatcher, slots: Slots, hold: Hold, limited: LimitedTurns) -> None:
        self._dispatcher = dispatcher
        self._slots = slots
        self._hold = hold
        self._limited = limited
        self._holdable = False
        self.backlog = False
        """Whether the last claim has brought all that it asked for, so that there may be more."""

    @property
    def brisk(self) -> bool:
        """Whether runs are so short that a slot should not wait for the store."""
        return self._dispatcher.pace <= _BRISK

    def served(self, claims: Sequence[Claim], *, asked: int) -> None:
        """Take in what a claim for free slots has brought."""
        self._holdable = any(map(self._may_wait, claims))
        self.backlog = len(claims) == asked

    def spoil(self, task: str) -> None:
        """Take no more in advance until a claim for free slots has brought something, and runs have shown their speed.

        Of the task, whose claim has waited in vain, no more is held than there are slots until its runs have done so.
        """
        self._dispatcher.paces[task] = SECOND
        self.backlog = self._holdable = False
        # What is known of it is of those that have ended; the ones that keep the slots may be of another kind.
        self._dispatcher.gap = _MOMENT

    def in_a_moment(self) -> int:
        """How many runs end in a moment, if they go on as lately; none while they last long."""
        if not self.brisk:
            return 0
        gap = max(self._dispatcher.gap, self._dispatcher.idle / _AGEING)
        return min(_MOST_IN_ADVANCE, int(_MOMENT / (gap + 1)))

    def brisk_of(self, tasks: Sequence[str]) -> tuple[str, ...]:
        """Return those of the tasks whose own runs are short."""
        paces = self._dispatcher.paces
        return tuple(task for task in tasks if paces.get(task, SECOND) <= _BRISK)

    def most(self) -> int:
        """How many to take in advance: what can be started in a moment, asked for when half of it is."""
        if not self._holdable or self._limited.hungry:
            return 0
        most = self.in_a_moment()
        return most - self._hold.waiting if self._hold.waiting * 2 < most else 0

    def _may_wait(self, claim: Claim) -> bool:
        """Whether jobs like this one may be taken in advance."""
        return claim.on_crash == "retry" and not claim.crashes and claim.task not in self._slots.cpu_tasks
