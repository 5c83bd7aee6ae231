"""Which jobs are claimed before a slot is free for them: how many, how early, and of which tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duetime.model.job import Claim
from duetime.model.time import MILLISECOND, SECOND, Micros
from duetime.runtime.claiming.claim_requests import ClaimGroup, ClaimRequests, DemandBuilder
from duetime.runtime.claiming.held_claims import HeldClaims
from duetime.runtime.claiming.limits import LimitedClaimPolicy
from duetime.runtime.fleet_pacing import FleetPacing
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.running.slots import Slots
from duetime.runtime.store_clock import monotonic

_SHORT_RUN: Micros = 25 * MILLISECOND
"""Runs shorter than this on average make waiting for the next claim worth avoiding."""
_PREFETCH_SPAN: Micros = 50 * MILLISECOND
"""As many jobs are taken in advance as end in this time."""
_MAX_PREFETCHED = 1_000
_IDLE_DISCOUNT = 100_000
"""How much longer nothing may have ended than runs were apart, before it is doubted that they still would be so close."""


class PrefetchPolicy:
    """Grows with the speed at which runs end; while they last long, due jobs are left to others."""

    def __init__(
        self, *, dispatcher: Dispatcher, slots: Slots, hold: HeldClaims, limited: LimitedClaimPolicy
    ) -> None:
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
        return self._dispatcher.pace <= _SHORT_RUN

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
        self._dispatcher.gap = _PREFETCH_SPAN

    def in_a_moment(self) -> int:
        """How many runs end in a moment, if they go on as lately; none while they last long."""
        if not self.brisk:
            return 0
        gap = max(self._dispatcher.gap, self._dispatcher.idle / _IDLE_DISCOUNT)
        return min(_MAX_PREFETCHED, int(_PREFETCH_SPAN / (gap + 1)))

    def brisk_of(self, tasks: Sequence[str]) -> tuple[str, ...]:
        """Return those of the tasks whose own runs are short."""
        paces = self._dispatcher.paces
        return tuple(task for task in tasks if paces.get(task, SECOND) <= _SHORT_RUN)

    def most(self) -> int:
        """How many to take in advance: what can be started in a moment, asked for when half of it is."""
        if not self._holdable or self._limited.hungry:
            return 0
        most = self.in_a_moment()
        return most - self._hold.waiting if self._hold.waiting * 2 < most else 0

    def _may_wait(self, claim: Claim) -> bool:
        """Whether jobs like this one may be taken in advance."""
        return claim.on_crash == "retry" and not claim.crashes and claim.task not in self._slots.cpu_tasks


class PrefetchTiming:
    """Says when to claim ahead: before a job is due, and no sooner than what comes after it can be taken along."""

    def __init__(self, window: Micros) -> None:
        self._half = window // 2
        # Not the whole window: due times are often round, and what is held starts at the very moment before.
        self._reach = window * 15 // 16
        self._next: Micros = 0
        self._fruitful = False
        self.left_some = False
        """Whether there was more within the window than could be held."""

    def pause(self, wait: Micros, *, now: Micros, roomy: bool) -> Micros:
        """Return how long to wait before the next claim ahead, 0 for not at all, if the next job is due after `wait`."""
        if self.left_some and wait <= self._reach:
            # Once enough of what is held has started there is room again; what is due sooner is claimed when it is.
            return 0 if roomy else wait
        early = max(0, self._next - now)
        return 0 if wait <= early else max(early, wait - self._reach)

    def catches_up(self, *, now: Micros, roomy: bool) -> bool:
        """Whether to claim ahead although jobs are due, which follow one another faster than they can be asked for."""
        return roomy and (self._fruitful or self._next <= now)

    def taken(self, count: int, *, all_room: bool, now: Micros) -> None:
        """Take in what a claim ahead has brought, and whether it has filled the room that there was for it."""
        self._next = now + self._half
        self._fruitful = count > 0
        self.left_some = all_room

    def room_made(self) -> None:
        """Let the next claim come at once: enough of what was held has started."""
        self.left_some = False
        self._next = 0


@dataclass(slots=True, kw_only=True)
class Prefetcher:
    """Claims ahead, and says how much may be."""

    asking: ClaimRequests
    demands: DemandBuilder
    hold: HeldClaims
    appetite: PrefetchPolicy
    turns: PrefetchTiming
    crowd: FleetPacing
    slots_worth: int
    window: Micros
    _lasting: bool = False
    """Whether what was left the last time is of tasks whose runs last, so that it needs a slot each."""

    def budget(self) -> int:
        """How many claims to hold: one for each slot or, if that is more, this worker's share of what ends in a moment."""
        if self._lasting:
            return self.slots_worth
        return max(self.slots_worth, self.appetite.in_a_moment() // self.crowd.workers)

    async def fill(self) -> bool:
        """Take what falls due within the window, and tell whether there was any that may be taken ahead."""
        taken = 0
        self._lasting = False
        # Not whether there is room afterwards: some may have started, and made room, since it was asked for.
        all_room = not self.hold.room
        for lane in self.demands.lanes():
            brisk = lane._replace(tasks=self.appetite.brisk_of(lane.tasks))
            if brisk == lane:
                found, filled = await self._take(lane, self.hold.room)
            else:
                found, filled = await self._take(lane, self.slots_worth - len(self.hold))
                if brisk.tasks and (filled or len(self.hold) >= self.slots_worth):
                    more, beyond = await self._take(brisk, self.hold.room)
                    found += more
                    self._lasting |= not beyond
            taken += found
            all_room |= filled
        self.turns.taken(taken, all_room=all_room, now=monotonic())
        return taken > 0

    async def _take(self, lane: ClaimGroup, room: int) -> tuple[int, bool]:
        """Hold jobs of a lane, and tell how many were found and whether that is all there was room for."""
        room = min(room, self.hold.room, self.demands.share(lane))
        if room <= 0:
            return 0, False
        claims = await self.asking.claim(self.demands.ahead(lane, room, window=self.window))
        for claim in claims:
            self.hold.add(claim)
        return len(claims), len(claims) == room
