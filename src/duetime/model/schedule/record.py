"""Schedules as values: what is stored of one, and what can be written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from duetime.model.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, NewJob, OnCrash
from duetime.model.stored.audit import ITSELF, AuditEntry
from duetime.model.time import SECOND, Instant, Micros

Overlap: TypeAlias = Literal["skip", "queue_one", "queue_all", "cancel_running", "allow"]
Misfire: TypeAlias = Literal["latest", "all", "skip"]
Owner: TypeAlias = Literal["code", "user"]

DEFAULT_MISFIRE_WINDOW: Micros = 3600 * SECOND
DEFAULT_MISFIRE_LIMIT = 100
SUPERSEDED = "superseded by the next occurrence"
"""Why a firing that cancels ends the earlier jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchedule:
    """A schedule, as the store has it or is to have it."""

    name: str
    task: str
    payload: str
    trigger: str
    """The trigger's spec as JSON, with its anchor."""
    declared: str
    """What the code that owns it has declared, as `declaration` writes it; empty when no code does."""
    owner: Owner = "code"
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    on_crash: OnCrash = "retry"
    retries: int | None = None
    timeout: Micros | None = None
    terms: str | None = None
    """What its jobs carry, as `JobTerms.to_text` writes it."""
    overlap: Overlap = "skip"
    overlap_limit: int | None = None
    """How many jobs may wait with `queue_all`."""
    misfire: Misfire = "latest"
    misfire_window: Micros = DEFAULT_MISFIRE_WINDOW
    misfire_limit: int = DEFAULT_MISFIRE_LIMIT
    """How many missed occurrences run with `all`."""
    pause_after: int | None = None
    """How many failures in a row pause it."""
    paused_at: Instant | None = None
    paused_reason: str | None = None
    paused_by: str | None = None
    paused_until: Instant | None = None
    """When it goes on by itself."""
    parked_at: Instant | None = None
    """Since when no code declares it any more."""
    fired_through: Instant
    """Nothing fires at or below this instant."""
    next_at: Instant | None
    """The next occurrence, or where a search that found none goes on; `None` when there is no more, or while it is parked."""
    made: int = 0
    streak_from: Instant = 0
    """Failures of occurrences before this instant do not count towards a pause."""
    rev: int = 0
    """Rises with every change; what was planned before a change is refused. 0: not stored yet."""
    created_at: Instant = 0
    updated_at: Instant = 0
    live: int = 0
    """How many of its jobs are pending or running."""
    streak: int = 0
    """How many of its jobs have failed in a row; counted only where that can pause it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleUpdate:
    """A compare-and-set of a schedule, with what is stored together with it."""

    before: StoredSchedule | None
    """As it was read: written only if it has neither been changed nor fired since. `None`: it must not exist."""
    after: StoredSchedule
    entry: AuditEntry | None = None
    jobs: tuple[NewJob, ...] = ()
    withdraw: str | None = None
    """Why planted jobs that have not started are withdrawn; `None` leaves them."""
    again: bool = True
    """Whether withdrawn jobs are planted again, because the trigger still has them."""
    only: Instant | None = None
    """The one occurrence that is withdrawn; `None` for all that are planted."""
    held: bool = True
    """Whether those are called off, too, that a worker holds ready to start. They are not planted again, since the
    worker may start them before it hears of it; left alone, they run as they were made."""

    @property
    def drawn(self) -> bool:
        """Whether those end, too, whose occurrence has passed and that wait for the time that was drawn for them.

        They keep their occurrence and so account for it. Where the schedule goes on as it was, they run as they were made.
        """
        return self.held or not self.again


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A compare-and-set of a schedule's place in time, with the jobs that are stored together with it."""

    name: str
    rev: int
    expected: Instant
    """What `fired_through` must still be."""
    fired_through: Instant
    next_at: Instant | None
    jobs: tuple[NewJob, ...]
    cancels: bool = False
    """Whether its earlier jobs are asked to end, so that the new one can run."""
    pause: str | None = None
    """Why it is paused now, if it is."""
    resumes: bool = False
    """Whether the end of its pause has come."""

    @property
    def made(self) -> int:
        """How many jobs it makes; records of what was skipped do not count."""
        return sum(not job.state.terminal for job in self.jobs)

    def entries(self) -> list[AuditEntry]:
        """Return audit entries for a pause or the end of one."""
        said = [("resume", "its time was over")] if self.resumes else []
        if self.pause is not None:
            said.append(("pause", self.pause))
        return [
            AuditEntry(verb=verb, target=self.name, who=ITSELF, detail={"reason": why}) for verb, why in said
        ]


def standstill(schedule: StoredSchedule) -> str | None:
    """Return why a schedule does not fire: paused or parked; `None` if it does."""
    if schedule.parked_at is not None:
        return PARKED
    return PAUSED if schedule.paused_at is not None else None


PAUSED: Final = "paused"
PARKED: Final = "parked"
