"""What users read back of schedules and of their history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Self, TypeAlias
from zoneinfo import ZoneInfo

from duetime.errors import InvalidOption
from duetime.model.audit import StoredAuditEntry
from duetime.model.job import FOREVER, JobTerms
from duetime.model.schedule.occurrences import searched_until
from duetime.model.schedule.record import Misfire, Overlap, Owner, StoredSchedule
from duetime.model.stored import with_blanks
from duetime.model.time import to_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger, trigger_to_show
from duetime.scheduler.records import json_or_text, optional_datetime, optional_timedelta


def readable_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the detail of an entry as people read it; a pair stays a pair, what says nothing is left out."""
    found: dict[str, Any] = {}
    for name, value in detail.items():
        match value:
            case [before, after]:
                found.update(_readable_pairs(name, before, after))
            case None:
                pass
            case _:
                found[name] = _readable_value(name, value)
    return found


def _readable_pairs(name: str, before: Any, after: Any) -> Iterator[tuple[str, list[Any]]]:
    if name == "terms" and (terms := _read_terms(before, after)) is not None:
        was, became = terms
        for term in was:
            if was[term] != became[term]:
                yield from _readable_pairs(term, was[term], became[term])
    else:
        yield (
            _FIELD_NAMES.get(name, name),
            [None if one is None else _readable_value(name, one) for one in (before, after)],
        )


def _read_terms(*texts: str | None) -> list[dict[str, Any]] | None:
    """Return what terms say; `None` if one of them cannot be read."""
    try:
        return [asdict(JobTerms.from_text(text)) for text in texts]
    except InvalidOption:
        return None


def _readable_value(name: str, value: Any) -> Any:
    """Return a value as people read it; as it is stored, if it cannot be read."""
    try:
        return _FIELD_READERS[name](value) if name in _FIELD_READERS else value
    except (TypeError, ValueError, OverflowError):
        return value


def _readable_length(micros: int) -> timedelta | str:
    return "forever" if micros == FOREVER else timedelta(microseconds=micros)


def _readable_trigger(text: str) -> str:
    return trigger_to_show(text).describe()


_FIELD_NAMES = {"payload": "arguments"}
_FIELD_READERS: dict[str, Callable[[Any], Any]] = {
    "trigger": _readable_trigger,
    "payload": json_or_text,
    "callbacks": json_or_text,
    "tags": list,
    **dict.fromkeys(("occurrence", "until", "start", "end", "parked_at"), to_datetime),
    **dict.fromkeys(("timeout", "misfire_window", "expires", "result_ttl", "failure_ttl"), _readable_length),
}

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
        trigger = schedule_trigger(schedule)
        schedule = with_blanks(schedule)
        parked = schedule.parked_at is not None or isinstance(trigger, UnreadableTrigger)
        searched = searched_until(trigger, schedule.next_at)
        coming = optional_datetime(schedule.next_at)
        following = None if coming is None else coming.astimezone(ZoneInfo(trigger.tz))
        return cls(
            name=schedule.name,
            task=schedule.task,
            arguments=json_or_text(schedule.payload),
            trigger=trigger,
            description=trigger.describe(),
            state="parked" if parked else _state(schedule),
            owner=schedule.owner,
            next_at=following if searched is None else None,
            searched_until=None if searched is None else following,
            queue=schedule.queue,
            priority=schedule.priority,
            retries=schedule.retries,
            timeout=optional_timedelta(schedule.timeout),
            tags=_tags(schedule.terms),
            overlap=schedule.overlap,
            overlap_limit=schedule.overlap_limit,
            misfire=schedule.misfire,
            misfire_window=timedelta(microseconds=schedule.misfire_window),
            misfire_limit=schedule.misfire_limit,
            pause_after=schedule.pause_after,
            paused=schedule.paused_at is not None,
            paused_at=optional_datetime(schedule.paused_at),
            paused_reason=schedule.paused_reason,
            paused_by=schedule.paused_by,
            paused_until=optional_datetime(schedule.paused_until),
            parked=parked,
            parked_at=optional_datetime(schedule.parked_at),
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
    """As given by `by`; for what code declares, the process; `duetime` for what no one asked for."""
    verb: str
    """`put`, `edit`, `import`, `declare`, `pause`, `resume`, `skip`, `trigger`, `backfill`, `park` or `delete`."""
    detail: Mapping[str, Any]
    """For a change: the fields that differ, each with what it was and what it is."""

    @classmethod
    def from_stored(cls, entry: StoredAuditEntry) -> Self:
        """Read what the store has kept."""
        return cls(
            at=to_datetime(entry.at), who=entry.who, verb=entry.verb, detail=readable_detail(entry.detail)
        )


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
        return JobTerms.from_text(terms).tags
    except ValueError:
        return ()


def _state(schedule: StoredSchedule) -> ScheduleState:
    if schedule.next_at is None:
        return "ended"
    return "paused" if schedule.paused_at is not None else "active"
