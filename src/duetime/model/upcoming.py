"""The occurrences of a schedule that are to come, with what stands in their way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from duetime.model.instants import Instant, from_datetime, in_words
from duetime.model.remaining import left
from duetime.model.schedule import StoredSchedule
from duetime.model.schedule_moves import standstill
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.preview import Upcoming, preview


def upcoming(
    schedule: StoredSchedule,
    trigger: Trigger,
    *,
    after: Instant,
    count: int,
    skipped: Mapping[Instant, str],
) -> list[Upcoming]:
    """Return the occurrences strictly after an instant; as many at most as its schedule may still make jobs for.

    `skipped` has the reason for those that will not run.
    """
    found = [(from_datetime(one.at), one) for one in preview(trigger, after=after, count=count)]
    if trigger.times is not None:
        passed = trigger.count(schedule.fired_through, after) if after > schedule.fired_through else 0
        planted = sum(at <= schedule.fired_through for at, _ in found)
        found = found[: planted + (left(trigger, made=schedule.made + (passed or 0)) or 0)]
    return [
        replace(one, note="; ".join(filter(None, (one.note, skipped.get(at), _stands(schedule, at)))) or None)
        for at, one in found
    ]


def _stands(schedule: StoredSchedule, occurrence: Instant) -> str | None:
    """Say that a schedule stands still at a time."""
    until = schedule.paused_until
    if standstill(schedule) != "paused" or until is None:
        return standstill(schedule)
    return None if occurrence >= until else f"paused until {in_words(until)}"
