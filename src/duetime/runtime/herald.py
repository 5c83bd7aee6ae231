"""Turns what a worker does into events, once the store has accepted it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from duetime.model.event import Event, EventKind, job_event
from duetime.model.instants import Instant, to_datetime
from duetime.model.job import Claim, Token
from duetime.model.outcome import Settlement
from duetime.runtime.events import Events
from duetime.runtime.identity import Identity
from duetime.runtime.run import Run
from duetime.runtime.timekeeper import Timekeeper


class _Expected(NamedTuple):
    claim: Claim
    kind: EventKind | None


class Herald:
    """Speaks for one worker; while nobody listens to its events it has nothing to do."""

    def __init__(self, events: Events, identity: Identity, time: Timekeeper) -> None:
        self.events = events
        self._identity = identity
        self._time = time
        self._expected: dict[Token, _Expected] = {}

    def worker(self, kind: EventKind, *, reason: str | None = None) -> None:
        """Tell what becomes of the worker itself."""
        if self.events.heard:
            at = to_datetime(self._time.now())
            self.events.emit(Event(kind=kind, at=at, worker=self._identity.worker_id, reason=reason))

    def started(self, run: Run) -> None:
        """Tell that a run begins."""
        self._tell(EventKind.JOB_STARTED, run.claim, at=run.started_at)

    def recorded(self, run: Run, at: Instant) -> None:
        """Tell of a success that a run has recorded itself."""
        self._tell(EventKind.JOB_SUCCEEDED, run.claim, at=at)

    def expect(self, claim: Claim, settlement: Settlement, kind: EventKind | None) -> None:
        """Remember what to tell once the store has answered to a settlement."""
        self._expected[settlement.token] = _Expected(claim, kind)

    def settled(self, batch: Sequence[Settlement], accepted: frozenset[Token]) -> None:
        """Tell what the store has accepted, and what it has refused because the claim was lost."""
        if not self._expected:
            return
        for settlement in batch:
            if (expected := self._expected.pop(settlement.token, None)) is None:
                continue
            kind = expected.kind if settlement.token in accepted else EventKind.JOB_LOST
            if kind is not None:
                at = settlement.finished_at or settlement.ended_at or self._time.now()
                self._tell(kind, expected.claim, at=at, settlement=settlement)

    def _tell(
        self, kind: EventKind, claim: Claim, *, at: Instant, settlement: Settlement | None = None
    ) -> None:
        self.events.emit(
            job_event(
                kind,
                claim,
                worker=self._identity.worker_id,
                at=at,
                error=None if settlement is None else settlement.error,
                reason=None if settlement is None else settlement.reason,
            )
        )
