"""The coming occurrences of all schedules in one list, for calendars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from duetime.model.schedule.occurrences import upcoming_occurrences
from duetime.model.schedule.record import StoredSchedule
from duetime.model.text import check_whole
from duetime.model.time import DAY, Instant, to_datetime
from duetime.model.triggers.preview import Upcoming
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger

MAX_DAYS = 93
MOST_EACH = 50
"""How many occurrences of one schedule are listed: one that comes every minute would hide all others."""
MOST_ENTRIES = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarEntry:
    """One occurrence to come."""

    schedule: str
    task: str
    queue: str
    at: datetime
    """When it is, in UTC."""
    local: datetime
    """The same moment in the trigger's zone."""
    note: str | None
    """What a change of the clock does to it, or why it will not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarRecord:
    """What schedules will do, if nothing changes."""

    start: datetime
    end: datetime
    entries: tuple[CalendarEntry, ...]
    """By time."""
    cut: tuple[str, ...]
    """Schedules that come oftener than is listed: only their first occurrences are there."""


def calendar_of(schedules: Iterable[StoredSchedule], *, start: Instant, days: int) -> CalendarRecord:
    """List what comes in some days; this may take seconds."""
    end = start + check_whole(days, 1, MAX_DAYS, what="days") * DAY
    entries: list[CalendarEntry] = []
    cut: list[str] = []
    for schedule in schedules:
        found = list(_upcoming(schedule, start=start, end=end))
        if len(found) > MOST_EACH:
            cut.append(schedule.name)
        entries += [
            CalendarEntry(
                schedule=schedule.name,
                task=schedule.task,
                queue=schedule.queue,
                at=one.at,
                local=one.local,
                note=one.note,
            )
            for one in found[:MOST_EACH]
        ]
        if len(entries) > MOST_ENTRIES:
            break
    entries.sort(key=lambda one: (one.at, one.schedule))
    return CalendarRecord(
        start=to_datetime(start), end=to_datetime(end), entries=tuple(entries[:MOST_ENTRIES]), cut=tuple(cut)
    )


def _upcoming(schedule: StoredSchedule, *, start: Instant, end: Instant) -> Iterator[Upcoming]:
    """Yield the occurrences of a schedule, one more than are listed; none of one that cannot be read."""
    trigger = schedule_trigger(schedule)
    if isinstance(trigger, UnreadableTrigger) or schedule.parked_at is not None:
        return
    last = to_datetime(end)
    for one in upcoming_occurrences(schedule, trigger, after=start, count=MOST_EACH + 1, skipped={}):
        if one.at > last:
            return
        yield one
