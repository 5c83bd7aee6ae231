"""The occurrences to come, as people read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from duetime.model.instants import Instant, to_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.notes import note


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """One occurrence to come."""

    at: datetime
    """When it is, in UTC."""
    local: datetime
    """The same moment in the trigger's zone."""
    due_at: datetime
    """When its job falls due: the same, unless the trigger has a jitter."""
    note: str | None = None
    """What a change of the clock does to it, or why it will not run."""


def preview(trigger: Trigger, *, after: Instant, count: int) -> list[Upcoming]:
    """Return the next occurrences strictly after `after`; fewer than `count` if there are no more."""
    found: list[Upcoming] = []
    zone, due = ZoneInfo(trigger.tz), trigger.after(after)
    while due is not None and len(found) < count:
        at = to_datetime(due)
        due_at, said = to_datetime(trigger.due(due)), note(trigger, due)
        found.append(Upcoming(at=at, local=at.astimezone(zone), due_at=due_at, note=said))
        due = trigger.after(due)
    return found
