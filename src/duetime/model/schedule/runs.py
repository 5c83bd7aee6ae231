"""How schedules fare: which of their jobs ran last, and how many of those on record went well and how many failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from duetime.model.job import JobId
from duetime.model.retention import is_over
from duetime.model.states import State
from duetime.model.stored.jobs import with_blanks
from duetime.model.time import Instant, Micros

RUN_ENDS: Final[tuple[State, ...]] = (State.SUCCEEDED, State.FAILED, State.CANCELLED)
"""How runs end."""
_COUNTED: Final[tuple[State, ...]] = (State.SUCCEEDED, State.FAILED)
_MOST_COUNTED: Final = 1_000
_MANY: Final = 100
"""Of more schedules fewer records are counted."""


def most_counted(schedules: int) -> int:
    """Return up to how many records of each state are counted for each of this many schedules."""
    return _MOST_COUNTED if schedules <= _MANY else _MOST_COUNTED // 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A job of a schedule that has run and ended."""

    id: JobId
    schedule: str
    state: State
    occurrence: Instant | None
    """`None` for one that was triggered by hand."""
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant
    error: str | None
    reason: str | None
    failure_ttl: Micros | None

    @classmethod
    def from_row(cls, row: Sequence[Any], *, now: Instant) -> Self:
        """Read the columns in the order of the fields; what has a wrong type is blank, and so is an error past its time."""
        values: dict[str, Any] = dict(zip(cls.__dataclass_fields__, row, strict=True))
        values["state"] = State(values["state"])
        run = with_blanks(cls(**values))
        if run.state is State.FAILED and is_over(run.finished_at, run.failure_ttl, now=now):
            return replace(run, error=None)
        return run

    @property
    def rank(self) -> tuple[Instant, JobId]:
        """What the latest run has most of: the time it was for, which is when it was made if someone triggered it."""
        return self.created_at if self.occurrence is None else self.occurrence, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRuns:
    """How one schedule fares."""

    last: StoredRun | None
    """The latest that has run and ended."""
    succeeded: int
    failed: int
    """How many of its jobs on record ended so."""
    at_least: frozenset[State]
    """Which of these numbers are lower bounds."""


def runs_by_schedule(
    counts: Mapping[tuple[str, State], int], found: Iterable[StoredRun], *, most: int
) -> dict[str, ScheduleRuns]:
    """Put together, by the name of the schedule, what was counted up to one more than `most` and the latest runs of each kind."""
    last = {run.schedule: run for run in sorted(found, key=lambda run: run.rank)}
    return {
        name: ScheduleRuns(
            last=last.get(name),
            succeeded=min(counts[name, State.SUCCEEDED], most),
            failed=min(counts[name, State.FAILED], most),
            at_least=frozenset(state for state in _COUNTED if counts[name, state] > most),
        )
        for name, state in counts
        if state is State.SUCCEEDED
    }
