"""Who holds a unique key, and what becomes of a request for one that is held."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from duetime.model.job import JobId, Key
from duetime.model.states import State
from duetime.model.time import Instant, Micros


class KeyHolder(NamedTuple):
    """A job that has a key, or had it until not long ago."""

    id: JobId
    state: State
    payload: str
    finished_at: Instant | None
    keep: Micros | None
    until: Instant | None

    def holds(self, now: Instant) -> bool:
        """Whether the key is the job's at this moment: while it lives, and past its end where it asked for that."""
        if self.finished_at is None:
            return True
        kept = self.keep is not None and now < self.finished_at + self.keep
        return kept or (self.until is not None and now < self.until)


class KeyDecision(Enum):
    """What becomes of a request whose key another job has."""

    JOIN = auto()
    """The other job serves the request."""
    REPLACE = auto()
    """The other job, which waits, becomes the one that was asked for."""
    TAKE_OVER = auto()
    """The other job lets go of the key, and the request is stored behind it."""
    REFUSE = auto()


def decide_key(asked: Key, holder: KeyHolder, *, now: Instant) -> KeyDecision:
    """Decide about a request for a key that somebody has."""
    if not holder.holds(now):
        return KeyDecision.TAKE_OVER
    match asked.if_exists:
        case "return":
            return KeyDecision.JOIN
        case "raise":
            return KeyDecision.REFUSE
        case "replace":
            # What was asked for last is never lost: one that runs, or has ended, cannot become another.
            return KeyDecision.REPLACE if holder.state is State.PENDING else KeyDecision.TAKE_OVER
