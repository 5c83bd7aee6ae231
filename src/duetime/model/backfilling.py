"""Which occurrences of the past can be made up for."""

from __future__ import annotations

from typing import Final

from duetime.errors import InvalidTime
from duetime.model.instants import Instant, to_datetime
from duetime.model.schedule import StoredSchedule
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.searching import Nothing

MOST_BACKFILLED: Final = 10_000


def to_backfill(
    schedule: StoredSchedule, trigger: Trigger, *, start: Instant, end: Instant, now: Instant
) -> list[Instant]:
    """Return the occurrences from `start` to `end`, both included, that the schedule itself will not make any more."""
    if end > now or start > end:
        text = (
            f"end {_shown(end)} lies in the future; the schedule itself makes what is to come"
            if end > now
            else f"start {_shown(start)} lies after end {_shown(end)}"
        )
        raise InvalidTime(text)
    until = min(end, schedule.fired_through)
    found: list[Instant] = []
    occurrence = trigger.first(start - 1, until=until)
    while not isinstance(occurrence, Nothing) and occurrence <= until:
        if len(found) == MOST_BACKFILLED:
            count = trigger.count(start - 1, until)
            number = f"more than {MOST_BACKFILLED:,}" if count is None else f"{count:,}"
            text = f"{schedule.name} has {number} occurrences in this time, and at most {MOST_BACKFILLED:,} are made up for in one go"
            raise InvalidTime(f"{text}; ask for a shorter time, several times if need be")
        found.append(occurrence)
        occurrence = trigger.first(occurrence, until=until)
    if isinstance(occurrence, Nothing) and occurrence.through < until:
        text = (
            f"which occurrences {schedule.name} has after {_shown(occurrence.through)} takes too long to tell"
        )
        raise InvalidTime(f"{text}; ask for a shorter time, several times if need be")
    return found


def _shown(instant: Instant) -> str:
    return to_datetime(instant).isoformat(sep=" ")
