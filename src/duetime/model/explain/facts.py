"""What an explanation is made from, and what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from duetime.model.fleet import Fleet
from duetime.model.instants import Instant, Micros
from duetime.model.stored import StoredAttempt, StoredJob, StoredWorker


class Sentence(NamedTuple):
    """One thing to know, and when it happened; `None` for what is so now."""

    at: Instant | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitFacts:
    """A fleet-wide limit that the job runs under."""

    what: str
    """Whom it counts, such as `queue mail`."""
    running: int
    most: int | None
    rate: str | None
    """Such as `100 per 1 minute`."""
    again_at: Instant | None
    """When the rate lets the next one start, if it is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is so now, whatever is to be explained."""

    now: Instant
    workers: Sequence[StoredWorker] = ()
    queue_paused_at: Instant | None = None
    queue_paused_reason: str | None = None
    tz: str = "UTC"
    """The zone that times are told in."""

    def worker(self, worker_id: str | None) -> StoredWorker | None:
        """Return a worker that is still remembered."""
        return next((worker for worker in self.workers if worker.id == worker_id), None)

    def ago(self, instant: Instant) -> Micros:
        """How long ago something was; negative for what is to come."""
        return self.now - instant

    @property
    def fleet(self) -> Fleet:
        """The workers that are there."""
        return Fleet.of(self.workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(Situation):
    """Everything a store knows that bears on one job."""

    job: StoredJob
    attempts: Sequence[StoredAttempt] = ()
    limits: Sequence[LimitFacts] = ()
