"""Unstarted claims: started when they are due and a slot is free, given back when none is found within a window."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Callable, Sequence
from typing import TypeAlias

from duetime.model.job import Claim, JobId
from duetime.model.time import MILLISECOND, SECOND, Instant, Micros
from duetime.runtime.store_clock import StoreClock

_WaitingClaim: TypeAlias = tuple[int, Instant, JobId, int, Claim]
"""A claim behind what it is sorted by: its priority, due time and job, then which lot it came with."""

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
        *,
        budget: Callable[[], int],
        slots: int,
        window: Micros,
        time: StoreClock,
        on_due: Callable[[Sequence[Claim]], Sequence[Claim]],
        on_late: Callable[[Claim], None],
    ) -> None:
        """Have `on_due` start claims at their time; those that it returns wait, and after a window go to `on_late`.

        Only as many as there are `slots` wait for so long; what was held beyond was to start in a moment, and goes sooner.
        """
        self._budget = budget
        self._slots = slots
        self._window = window
        self._time = time
        self._on_due = on_due
        self._on_late = on_late
        self._claims: dict[JobId, Claim] = {}
        self._coming: dict[Instant, list[Claim]] = {}
        """By due time, since many jobs are due at the full minute: one timer for all of them, and no other work between."""
        self._waiting: list[_WaitingClaim] = []
        """Sorted: the most urgent is first."""
        self._lots = 0

    @property
    def room(self) -> int:
        """How many more claims may be held."""
        return max(0, self._budget() - len(self._claims))

    @property
    def roomy(self) -> bool:
        """Whether there is room for enough claims that it is worth asking for them."""
        return self.room >= min((self._budget() + 1) // 2, _WORTHWHILE_ROOM)

    def __len__(self) -> int:
        return len(self._claims)

    def count(self, counts: Callable[[Claim], bool]) -> int:
        """Return how many of the claims count."""
        return sum(map(counts, self._claims.values()))

    def add(self, claim: Claim) -> None:
        """Hold a claim until its due time, in place of an older one of the same job, which was lost."""
        self._claims[claim.job_id] = claim
        if (others := self._coming.get(claim.due_at)) is not None:
            others.append(claim)
            return
        before = next(reversed(self._coming), 0)
        self._coming[claim.due_at] = [claim]
        near = claim.due_at - _WAKE_EARLY
        if near <= before <= claim.due_at or not (wait := self._time.until(near)):
            # One of a stream: the loop is awake for the one before.
            self._arm(claim.due_at)
        else:
            asyncio.get_running_loop().call_later(wait, self._arm, claim.due_at)

    def add_due(self, claims: Sequence[Claim], *, at_most: Micros | None = None) -> None:
        """Hold claims whose time has come until slots are free, for a window unless `at_most` is less."""
        if not claims:
            return
        self._lots += 1
        for claim in claims:
            self._claims[claim.job_id] = claim
        lot = [(claim.priority, claim.due_at, claim.job_id, self._lots, claim) for claim in claims]
        if len(lot) == 1:
            # A burst that finds no slots comes one by one.
            insort(self._waiting, lot[0])
        else:
            self._waiting += lot
            self._waiting.sort()
        wait = self._window if at_most is None else min(self._window, at_most)
        # One timer for all, which keeps none of them: those that are started soon should be gone soon, too.
        asyncio.get_running_loop().call_later(wait / SECOND, self._give_up, self._lots)

    @property
    def claims(self) -> list[Claim]:
        """All that is held."""
        return list(self._claims.values())

    def get(self, job_id: JobId) -> Claim | None:
        """Return a held claim."""
        return self._claims.get(job_id)

    def first_waiting(self) -> Claim | None:
        """Return the most urgent claim whose time has come and that found no slot."""
        while self._waiting:
            claim = self._waiting[0][-1]
            if self._claims.get(claim.job_id) is claim:
                return claim
            del self._waiting[0]
        return None

    def hand_out(self, most: int, start: Callable[[Sequence[Claim]], Sequence[Claim]]) -> None:
        """Let go of claims whose time has come, the most urgent first, until `most` are started or all were offered.

        `start` returns those that it could not start, which go on waiting.
        """
        passed: list[_WaitingClaim] = []
        while most > 0 and self._waiting:
            lot = self._waiting[:most]
            del self._waiting[:most]
            offered = [entry[-1] for entry in lot if self._claims.get(entry[2]) is entry[-1]]
            for claim in offered:
                del self._claims[claim.job_id]
            refused = {claim.job_id: claim for claim in start(offered)}
            self._claims |= refused
            most -= len(offered) - len(refused)
            passed += [entry for entry in lot if entry[-1] is refused.get(entry[2])]
        self._waiting[:0] = passed

    @property
    def waiting(self) -> int:
        """How many claims wait for a slot."""
        return len(self._waiting)

    def take(self, job_id: JobId) -> Claim | None:
        """Let go of a claim, to start it or to end it otherwise."""
        return self._claims.pop(job_id, None)

    def take_all(self) -> list[Claim]:
        """Let go of everything."""
        claims = self.claims
        self._claims.clear()
        return claims

    def _arm(self, due_at: Instant) -> None:
        asyncio.get_running_loop().call_later(self._time.until(due_at), self._come_due, due_at)

    def _come_due(self, due_at: Instant) -> None:
        claims = [claim for claim in self._coming[due_at] if self._claims.get(claim.job_id) is claim]
        if claims and self._time.now() < due_at:
            # The estimate of the store's clock moved back meanwhile: never start early.
            self._arm(due_at)
            return
        del self._coming[due_at]
        for claim in claims:
            del self._claims[claim.job_id]
        # They came with several questions, and there may be more of them than slots.
        claims.sort(key=_urgency)
        if claims and (refused := self._on_due(claims)):
            most = max(0, self._slots - self.waiting)
            self.add_due(refused[:most])
            self.add_due(refused[most:], at_most=_OVERFLOW_WAIT)

    def _give_up(self, lot: int) -> None:
        late = [
            claim
            for _, _, job_id, of, claim in self._waiting
            if of == lot and self._claims.get(job_id) is claim
        ]
        self._waiting = [entry for entry in self._waiting if entry[3] != lot]
        for claim in late:
            self.take(claim.job_id)
            self._on_late(claim)


def _urgency(claim: Claim) -> tuple[int, JobId]:
    """Sort those that are due at one instant."""
    return claim.priority, claim.job_id
