"""Unstarted claims: started when they are due and a slot is free, given back when none is found within a window."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from typing import TypeAlias

from duetime.model.job import Claim, JobId
from duetime.model.time import MILLISECOND, SECOND, Instant, Micros
from duetime.runtime.service import WorkerContext

_ComingClaim: TypeAlias = tuple[Instant, int, JobId, int, Claim]
"""A claim behind what it is sorted by: its due time, priority, job and fence."""
_WaitingClaim: TypeAlias = tuple[int, Instant, JobId, float, Claim]
"""A claim behind its priority, due time and job, and the moment to give it back."""

_WAKE_EARLY: Micros = 20 * MILLISECOND
"""How long before a due time the loop is woken: the kernel may be late by a thousandth of a sleep."""
_OVERFLOW_WAIT: Micros = 100 * MILLISECOND
"""How long after its due time a claim that is held beyond the slots may wait for one: it was to start in half of that."""
_WORTHWHILE_ROOM = 25
"""How many claims are worth asking for, unless that is more than half of what may be held."""


class HeldClaims:
    """Keeps unstarted claims; they never hold a slot."""

    def __init__(
        self,
        context: WorkerContext,
        slots: int,
        *,
        budget: Callable[[], int],
        on_due: Callable[[Sequence[Claim]], Sequence[Claim]],
        on_late: Callable[[Claim], None],
    ) -> None:
        """Have `on_due` start claims at their time; those that it returns wait, and after a window go to `on_late`.

        Only as many as there are `slots` wait for so long; what was held beyond was to start in a moment, and goes sooner.
        """
        self._budget = budget
        self._slots = slots
        self._window = context.options.window
        self._time = context.time
        self._on_due = on_due
        self._on_late = on_late
        self.claims: dict[JobId, Claim] = {}
        """All that is held; what is taken out of it neither starts nor goes back."""
        self.waiting: list[_WaitingClaim] = []
        """What is due and found no slot, the most urgent first; some may have been taken meanwhile."""
        self._coming: list[_ComingClaim] = []
        """A heap of what is not due yet."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def room(self) -> int:
        """How many more claims may be held."""
        return max(0, self._budget() - len(self.claims))

    @property
    def roomy(self) -> bool:
        """Whether there is room for enough claims that it is worth asking for them."""
        return self.room >= min((self._budget() + 1) // 2, _WORTHWHILE_ROOM)

    def add(self, claims: Sequence[Claim]) -> None:
        """Hold claims until their due times, in place of older ones of the same jobs, which were lost."""
        for claim in claims:
            self.claims[claim.job_id] = claim
            heapq.heappush(self._coming, (claim.due_at, claim.priority, claim.job_id, claim.fence, claim))
        self._set_timer()

    def add_due(self, claims: Sequence[Claim], *, wait: Micros | None = None) -> None:
        """Hold claims whose time has come until slots are free, for a window unless `wait` is less."""
        if not claims:
            return
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + (self._window if wait is None else min(wait, self._window)) / SECOND
        for claim in claims:
            self.claims[claim.job_id] = claim
            self.waiting.append((claim.priority, claim.due_at, claim.job_id, give_up_at, claim))
        self.waiting.sort()
        # One timer for all, which keeps none of them: those that are started soon should be gone soon, too.
        loop.call_at(give_up_at, self._give_up, give_up_at)

    def first_waiting(self) -> Claim | None:
        """Return the most urgent claim whose time has come and that found no slot."""
        return next((claim for *_, claim in self.waiting if self._holds(claim)), None)

    def hand_out(self, most: int) -> None:
        """Start claims whose time has come, the most urgent first, until `most` are started or all were offered."""
        passed: list[_WaitingClaim] = []
        while most > 0 and self.waiting:
            lot, self.waiting = self.waiting[:most], self.waiting[most:]
            offered = [entry[-1] for entry in lot if self._holds(entry[-1])]
            refused = self._start(offered)
            most -= len(offered) - len(refused)
            passed += [entry for entry in lot if self._holds(entry[-1])]
        self.waiting[:0] = passed

    def take_all(self) -> list[Claim]:
        """Let go of everything."""
        claims, self.claims = list(self.claims.values()), {}
        return claims

    def _holds(self, claim: Claim) -> bool:
        return self.claims.get(claim.job_id) is claim

    def _start(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Start claims, and hold on to those that found no slot."""
        for claim in claims:
            del self.claims[claim.job_id]
        refused = self._on_due(claims) if claims else claims
        self.claims |= {claim.job_id: claim for claim in refused}
        return refused

    def _set_timer(self) -> None:
        """Wake the loop for the claim that falls due next; if that takes a while, shortly before, to be exact."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._coming:
            due_at = self._coming[0][0]
            wait = self._time.until(due_at - _WAKE_EARLY) or self._time.until(due_at)
            self._timer = asyncio.get_running_loop().call_later(wait, self._come_due)

    def _come_due(self) -> None:
        # By the store's clock as it is known now: never start early.
        now, due = self._time.now(), list[Claim]()
        while self._coming and self._coming[0][0] <= now:
            claim = heapq.heappop(self._coming)[-1]
            if self._holds(claim):
                due.append(claim)
        self._set_timer()
        if refused := self._start(due):
            most = max(0, self._slots - len(self.waiting))
            self.add_due(refused[:most])
            self.add_due(refused[most:], wait=_OVERFLOW_WAIT)

    def _give_up(self, give_up_at: float) -> None:
        late = [entry[-1] for entry in self.waiting if entry[3] <= give_up_at and self._holds(entry[-1])]
        self.waiting = [entry for entry in self.waiting if entry[3] > give_up_at]
        for claim in late:
            del self.claims[claim.job_id]
            self._on_late(claim)
