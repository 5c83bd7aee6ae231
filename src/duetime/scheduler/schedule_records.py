"""What users read back of schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Self, TypeAlias
from zoneinfo import ZoneInfo

from duetime.model.audit import StoredEntry
from duetime.model.instants import to_datetime
from duetime.model.oddities import mended
from duetime.model.remaining import searched_until
from duetime.model.schedule import Misfire, Overlap, Owner, StoredSchedule
from duetime.model.terms import Terms
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.text import trigger_of
from duetime.model.triggers.unreadable import Unreadable
from duetime.scheduler.change_details import spelled_out
from duetime.scheduler.records import loose, moment, span

ScheduleState: TypeAlias = Literal["active", "paused", "parked", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord:
    """A schedule as it stands."""

    name: str
    task: str
    arguments: Any
    """The arguments by parameter name, as JSON values; the raw text when it cannot be read."""
    trigger: Trigger
    description: str
    """The trigger in English; why it cannot be read, where that is so."""
    state: ScheduleState
    """`parked`: the code that declared it does so no more, or it cannot be read here. `ended`: there is no next time."""
    owner: Owner
    """`code` for one that is declared, `user` for one that was put."""
    next_at: datetime | None
    """The next occurrence, in the zone of its trigger; while it is paused, the first that has not run."""
    searched_until: datetime | None
    """Set while no next occurrence is found: there is none up to this time, when the search goes on."""
    queue: str
    priority: int
    retries: int | None
    timeout: timedelta | None
    tags: tuple[str, ...]
    overlap: Overlap
    overlap_limit: int | None
    misfire: Misfire
    misfire_window: timedelta
    misfire_limit: int
    pause_after: int | None
    paused: bool
    paused_at: datetime | None
    paused_reason: str | None
    paused_by: str | None
    paused_until: datetime | None
    parked: bool
    parked_at: datetime | None
    made: int
    """How many jobs it has made."""
    live: int
    """How many of its jobs are pending or running."""
    created_at: datetime
    updated_at: datetime
    """When it was last changed."""

    @classmethod
    def from_stored(cls, schedule: StoredSchedule) -> Self:
        """Read a stored schedule; one that cannot be read is shown as far as it can."""
        trigger = trigger_of(schedule)
        schedule = mended(schedule)
        parked = schedule.parked_at is not None or isinstance(trigger, Unreadable)
        searched = searched_until(trigger, schedule.next_at)
        coming = moment(schedule.next_at)
        following = None if coming is None else coming.astimezone(ZoneInfo(trigger.tz))
        return cls(
            name=schedule.name,
            task=schedule.task,
            arguments=loose(schedule.payload),
            trigger=trigger,
            description=trigger.describe(),
            state="parked" if parked else _state(schedule),
            owner=schedule.owner,
            next_at=following if searched is None else None,
            searched_until=None if searched is None else following,
            queue=schedule.queue,
            priority=schedule.priority,
            retries=schedule.retries,
            timeout=span(schedule.timeout),
            tags=_tags(schedule.terms),
            overlap=schedule.overlap,
            overlap_limit=schedule.overlap_limit,
            misfire=schedule.misfire,
            misfire_window=timedelta(microseconds=schedule.misfire_window),
            misfire_limit=schedule.misfire_limit,
            pause_after=schedule.pause_after,
            paused=schedule.paused_at is not None,
            paused_at=moment(schedule.paused_at),
            paused_reason=schedule.paused_reason,
            paused_by=schedule.paused_by,
            paused_until=moment(schedule.paused_until),
            parked=parked,
            parked_at=moment(schedule.parked_at),
            made=schedule.made,
            live=schedule.live,
            created_at=to_datetime(schedule.created_at),
            updated_at=to_datetime(schedule.updated_at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleChange:
    """Something that was done to a schedule."""

    at: datetime
    who: str
    """As given by `by`; for what code declares, the process; `duetime` for what nobody asked for."""
    verb: str
    """`put`, `edit`, `import`, `declare`, `pause`, `resume`, `skip`, `trigger`, `backfill`, `park` or `delete`."""
    detail: Mapping[str, Any]
    """For a change: the fields that differ, each with what it was and what it is."""

    @classmethod
    def from_stored(cls, entry: StoredEntry) -> Self:
        """Read what the store has kept."""
        return cls(at=to_datetime(entry.at), who=entry.who, verb=entry.verb, detail=spelled_out(entry.detail))


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """What came of making up for occurrences of the past, or would come of it."""

    occurrences: int
    """How many there are in the time that was asked for."""
    enqueued: int
    """For how many a job was stored."""
    already: int
    """How many had one."""


def _tags(terms: str | None) -> tuple[str, ...]:
    try:
        return Terms.from_text(terms).tags
    except ValueError:
        return ()


def _state(schedule: StoredSchedule) -> ScheduleState:
    if schedule.next_at is None:
        return "ended"
    return "paused" if schedule.paused_at is not None else "active"
