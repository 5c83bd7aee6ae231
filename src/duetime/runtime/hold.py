"""Unstarted claims: started when they are due and a slot is free, given back when none is found within a window."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

from duetime.model.instants import SECOND, Instant, Micros
from duetime.model.job import Claim, JobId
from duetime.runtime.timekeeper import Timekeeper


class _Waiting(NamedTuple):
    priority: int
    due_at: Instant
    job_id: JobId


class Hold:
    """Keeps unstarted claims; they never hold a slot."""

    def __init__(
        self,
        *,
        budget: int,
        window: Micros,
        time: Timekeeper,
        on_due: Callable[[Claim], bool],
        on_late: Callable[[Claim], None],
    ) -> None:
        """Ask `on_due` to start a claim at its time; after a window of refusals pass it to `on_late`."""
        self._budget = budget
        self._window = window
        self._time = time
        self._on_due = on_due
        self._on_late = on_late
        self._claims: dict[JobId, Claim] = {}
        self._timers: dict[JobId, asyncio.TimerHandle] = {}
        self._waiting: list[_Waiting] = []

    @property
    def room(self) -> int:
        """How many more claims may be held."""
        return max(0, self._budget - len(self._claims))

    @property
    def half_empty(self) -> bool:
        """Whether less than half of what may be held is."""
        return len(self._claims) * 2 < self._budget

    def __len__(self) -> int:
        return len(self._claims)

    def count(self, counts: Callable[[Claim], bool]) -> int:
        """Return how many of the claims count."""
        return sum(map(counts, self._claims.values()))

    def add(self, claim: Claim) -> None:
        """Hold a claim until its due time, in place of an older one of the same job, which was lost."""
        self.take(claim.job_id)
        self._claims[claim.job_id] = claim
        self._arm(claim)

    def add_due(self, claims: Sequence[Claim]) -> None:
        """Hold claims whose time has come until slots are free."""
        for claim in claims:
            self.take(claim.job_id)
            self._claims[claim.job_id] = claim
            heapq.heappush(self._waiting, _Waiting(claim.priority, claim.due_at, claim.job_id))
        # One timer for all: a claim that is started soon should not pay for one of its own.
        asyncio.get_running_loop().call_later(self._window / SECOND, self._give_up, claims)

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
            first = self._waiting[0]
            claim = self._claims.get(first.job_id)
            if claim is not None and claim.due_at == first.due_at:
                return claim
            heapq.heappop(self._waiting)
        return None

    def take_waiting(self, fits: Callable[[Claim], bool]) -> Claim | None:
        """Let go of the most urgent claim whose time has come and which fits."""
        passed: list[_Waiting] = []
        found: Claim | None = None
        while found is None and (claim := self.first_waiting()) is not None:
            entry = heapq.heappop(self._waiting)
            if fits(claim):
                found = self.take(claim.job_id)
            else:
                passed.append(entry)
        for entry in passed:
            heapq.heappush(self._waiting, entry)
        return found

    @property
    def waiting(self) -> int:
        """How many claims wait for a slot."""
        return len(self._waiting)

    def take(self, job_id: JobId) -> Claim | None:
        """Let go of a claim, to start it or to end it otherwise."""
        claim = self._claims.pop(job_id, None)
        if (timer := self._timers.pop(job_id, None)) is not None:
            timer.cancel()
        return claim

    def take_all(self) -> list[Claim]:
        """Let go of everything."""
        return [claim for job_id in list(self._claims) if (claim := self.take(job_id)) is not None]

    def _arm(self, claim: Claim) -> None:
        loop = asyncio.get_running_loop()
        self._timers[claim.job_id] = loop.call_later(self._time.until(claim.due_at), self._come_due, claim)

    def _come_due(self, claim: Claim) -> None:
        if self._time.now() < claim.due_at:
            # The estimate of the store's clock moved back meanwhile: never start early.
            self._arm(claim)
            return
        if self._on_due(claim):
            self.take(claim.job_id)
            return
        self.add_due([claim])

    def _give_up(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            if self._claims.get(claim.job_id) is claim:
                self.take(claim.job_id)
                self._on_late(claim)
