"""Who holds a unique key, and what becomes of a request for one that is held."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from duetime.model.instants import Instant, Micros
from duetime.model.job import JobId, Key
from duetime.model.states import State


class Holder(NamedTuple):
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


class Verdict(Enum):
    """What becomes of a request whose key another job has."""

    JOIN = auto()
    """The other job serves the request."""
    REPLACE = auto()
    """The other job, which waits, becomes the one that was asked for."""
    TAKE_OVER = auto()
    """The other job lets go of the key, and the request is stored behind it."""
    REFUSE = auto()


def judge(asked: Key, holder: Holder, *, now: Instant) -> Verdict:
    """Decide about a request for a key that somebody has."""
    if not holder.holds(now):
        return Verdict.TAKE_OVER
    match asked.if_exists:
        case "return":
            return Verdict.JOIN
        case "raise":
            return Verdict.REFUSE
        case "replace":
            # What was asked for last is never lost: one that runs, or has ended, cannot become another.
            return Verdict.REPLACE if holder.state is State.PENDING else Verdict.TAKE_OVER
