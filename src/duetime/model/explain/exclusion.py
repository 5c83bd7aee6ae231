"""What a trigger would have had at some time, and which part of it took that away."""

from __future__ import annotations

from duetime.model.explain.asking import Window
from duetime.model.explain.schedule_facts import ScheduleFacts
from duetime.model.explain.words import moment
from duetime.model.instants import Instant
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.between import Between
from duetime.model.triggers.compound import Compound
from duetime.model.triggers.minus import Except
from duetime.model.triggers.searching import Nothing


def occurs(trigger: Trigger | None, window: Window) -> Instant | None:
    """Return the first occurrence in a stretch of time, if there is one."""
    if trigger is None:
        return None
    first = trigger.first(window.since - 1, until=window.until)
    return None if isinstance(first, Nothing) or not window.has(first) else first


def taken_away(facts: ScheduleFacts, trigger: Trigger, window: Window) -> str | None:
    """Say which calendar, start or end keeps an occurrence from coming; `None` when there is none to keep."""
    if not isinstance(trigger, Compound):
        return None
    for part in trigger.inner():
        if (occurrence := occurs(part, window)) is None:
            found = taken_away(facts, part, window)
        elif isinstance(trigger, Except):
            found = _by_calendar(facts, trigger, occurrence)
        else:
            found = _by_bounds(facts, trigger, occurrence) if isinstance(trigger, Between) else None
        if found is not None:
            return found
    return None


def _by_calendar(facts: ScheduleFacts, trigger: Except, occurrence: Instant) -> str | None:
    why = trigger.calendar.why(occurrence)
    return None if why is None else f"Its calendar excludes {moment(facts, occurrence)}: {why}."


def _by_bounds(facts: ScheduleFacts, trigger: Between, occurrence: Instant) -> str | None:
    if trigger.start is not None and occurrence < trigger.start:
        return f"It does not begin before {moment(facts, trigger.start)}."
    if trigger.end is not None and occurrence > trigger.end:
        return f"It does not go on after {moment(facts, trigger.end)}."
    return None
