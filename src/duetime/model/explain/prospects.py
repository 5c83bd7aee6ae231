"""How a schedule stands now: what is in its way, and what comes next."""

from __future__ import annotations

from collections.abc import Iterator

from duetime.model.explain.facts import Sentence
from duetime.model.explain.fleet import by_queue, by_workers, names
from duetime.model.explain.schedule_facts import ScheduleFacts
from duetime.model.explain.words import first_line, moment, since
from duetime.model.instants import Instant
from duetime.model.remaining import searched_until
from duetime.model.schedule import StoredSchedule
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.notes import note
from duetime.model.triggers.text import trigger_of
from duetime.model.triggers.unreadable import Unreadable

_SHOWN = 3


def in_the_way(facts: ScheduleFacts, schedule: StoredSchedule) -> Iterator[str]:
    """Yield everything that keeps its next occurrence from running."""
    trigger = trigger_of(schedule)
    if facts.problem is not None:
        yield f"It waits, since {facts.problem}. Delete it and put it again."
    elif isinstance(trigger, Unreadable):
        yield f"It waits, since it has {trigger.describe()}. Put it again, or delete it."
    if (stopped := stop(facts, schedule)) is not None:
        yield stopped
    elif schedule.next_at is None:
        yield ending(facts, schedule)
        return
    else:
        yield from nobody_firing(facts)
    yield from by_queue(facts, schedule.queue)
    if facts.fleet.alive:
        yield from by_workers(facts, queue=schedule.queue, task=schedule.task)


def stop(facts: ScheduleFacts, schedule: StoredSchedule) -> str | None:
    """Say that it is paused or parked, with who, why and until when."""
    if schedule.parked_at is not None:
        return (
            f"It is parked since {moment(facts, schedule.parked_at)}: no code declares it any more. "
            "Declare it again, put it, or delete it."
        )
    if schedule.paused_at is None:
        return None
    by = f" by {schedule.paused_by}" if schedule.paused_by else ""
    why = f": {first_line(schedule.paused_reason)}" if schedule.paused_reason else ""
    until = f", until {moment(facts, schedule.paused_until)}" if schedule.paused_until is not None else ""
    return f"It is paused since {moment(facts, schedule.paused_at)}{by}{until}{why}."


def ending(facts: ScheduleFacts, schedule: StoredSchedule) -> str:
    """Say why nothing comes any more."""
    trigger = facts.trigger
    if trigger is not None and trigger.times is not None and schedule.made >= trigger.times:
        return f"It has ended: it has made all of its {trigger.times:,} jobs."
    last = None if trigger is None else trigger.last(0, facts.now)
    if last is None:
        return "It has ended: its trigger has no occurrence any more."
    return f"It has ended: the last occurrence of its trigger was at {moment(facts, last)}."


def nobody_firing(facts: ScheduleFacts) -> Iterator[str]:
    """Say that no process fires schedules, if none does."""
    fleet = facts.fleet
    if not fleet.alive:
        yield (
            "Nobody fires schedules: no worker is alive. Start one with: duetime worker MODULE:SCHEDULER, "
            "or only fire schedules with: duetime scheduler MODULE:SCHEDULER"
        )
    elif not fleet.fires:
        yield (
            f"Nobody fires schedules: {names(facts, fleet.alive)} was told to leave them alone. Start a worker without "
            "--no-schedules, or: duetime scheduler MODULE:SCHEDULER"
        )


def upcoming(facts: ScheduleFacts, schedule: StoredSchedule) -> Iterator[Sentence]:
    """Yield what comes next, with what the clock does to it."""
    trigger, occurrence = facts.trigger, schedule.next_at
    if trigger is None or occurrence is None:
        return
    if (through := searched_until(trigger, occurrence)) is not None:
        yield Sentence(
            None, f"No next occurrence is found up to {moment(facts, through)}. The search goes on then."
        )
        return
    again = facts.now if schedule.paused_until is None else schedule.paused_until
    if stop(facts, schedule) and occurrence <= again:
        # What comes during a pause is not overdue: it does not run.
        occurrence = trigger.after(again)
    shown: list[Instant] = []
    while occurrence is not None and len(shown) < _SHOWN:
        shown.append(occurrence)
        occurrence = trigger.after(occurrence)
    if not shown:
        return
    if shown[0] <= facts.now:
        yield Sentence(None, overdue(facts, shown[0]))
        return
    verb = "would run" if stop(facts, schedule) and schedule.paused_until is None else "runs"
    first, rest = shown[0], ", ".join(moment(facts, one) for one in shown[1:])
    then = f"; then at {rest}" if rest else ""
    yield Sentence(None, f"It {verb} next at {moment(facts, first)}, {since(facts, first)}{then}.")
    for one in shown:
        if (said := remark(trigger, one)) is not None:
            yield Sentence(None, said)


def overdue(facts: ScheduleFacts, occurrence: Instant) -> str:
    """Say that nobody has fired an occurrence whose time has come."""
    when = f"{moment(facts, occurrence)}, {since(facts, occurrence)}"
    return f"Its occurrence at {when}, has not been fired yet."


def remark(trigger: Trigger, occurrence: Instant) -> str | None:
    """Return a sentence about what the clock does to an occurrence, if anything."""
    said = note(trigger, occurrence)
    return None if said is None else f"{said[0].upper()}{said[1:]}."
