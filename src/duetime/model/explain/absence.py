"""Why there is no record of a schedule at some time."""

from __future__ import annotations

from collections.abc import Iterator

from duetime.model.audit import StoredEntry
from duetime.model.explain.asking import Window
from duetime.model.explain.exclusion import occurs, taken_away
from duetime.model.explain.facts import Sentence
from duetime.model.explain.prospects import ending, in_the_way, overdue, remark, stop
from duetime.model.explain.schedule_facts import ScheduleFacts
from duetime.model.explain.words import length, moment, since
from duetime.model.instants import Instant
from duetime.model.schedule import StoredSchedule
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.searching import Nothing

_CREATE = ("declare", "put")
"""What adds a schedule; with details it changes one."""


def absence(facts: ScheduleFacts, window: Window) -> Iterator[Sentence]:
    """Yield why nothing is recorded there, or what is to come."""
    schedule = facts.schedule
    if schedule is None:
        yield from _deleted(facts, window)
    elif window.until <= schedule.created_at:
        yield from _too_early(facts, schedule, window)
    elif (trigger := facts.trigger_at(window.since)) is None:
        yield Sentence(
            None, "Which occurrences it had then cannot be told: its trigger of that time cannot be read."
        )
    elif (occurrence := occurs(trigger, window)) is None:
        yield from _no_occurrence(facts, schedule, trigger, window)
    elif occurrence < schedule.created_at:
        yield from _too_early(facts, schedule, window)
    elif occurrence > facts.now:
        yield from _to_come(facts, schedule, trigger, occurrence)
    else:
        yield from _no_trace(facts, schedule, occurrence)
    yield from _edits(facts, window)


def _deleted(facts: ScheduleFacts, window: Window) -> Iterator[Sentence]:
    entry = facts.latest("delete")
    if entry is None:
        yield Sentence(
            None, "The schedule does not exist any more, and who deleted it is not known any more."
        )
        return
    yield Sentence(entry.at, f"The schedule was deleted by {entry.who}.")
    if window.since < entry.at:
        occurrence = occurs(facts.trigger_at(window.since), window)
        had = "" if occurrence is None else f" of its occurrence at {moment(facts, occurrence)}"
        yield Sentence(None, f"There is no record{had} from before.")


def _too_early(facts: ScheduleFacts, schedule: StoredSchedule, window: Window) -> Iterator[Sentence]:
    before = length(schedule.created_at - window.since)
    made = next((e for e in facts.entries if e.verb in _CREATE and not e.detail), None)
    by = f" by {made.who}" if made is not None and made.at >= schedule.created_at else ""
    yield Sentence(
        schedule.created_at, f"The schedule was created{by}, {before} after the time that you ask about."
    )
    if (deleted := facts.latest("delete", until=schedule.created_at)) is not None:
        yield Sentence(deleted.at, f"Another of the same name was deleted by {deleted.who}.")


def _no_occurrence(
    facts: ScheduleFacts, schedule: StoredSchedule, trigger: Trigger, window: Window
) -> Iterator[Sentence]:
    before, found = trigger.last(0, window.since - 1), trigger.first(window.since - 1)
    after = None if isinstance(found, Nothing) else found
    if (why := taken_away(facts, trigger, window)) is not None:
        yield Sentence(None, why)
    if isinstance(found, Nothing) and not found.proved:
        yield Sentence(None, f"No occurrence is found from then up to {moment(facts, found.through)}.")
        return
    if after is None and window.since <= facts.now:
        last = (
            "" if before is None else f": the last occurrence of its trigger was at {moment(facts, before)}"
        )
        yield Sentence(None, f"It had ended by then{last}.")
        return
    near = [
        f"the one {where} is at {moment(facts, instant)}"
        for where, instant in (("before", before), ("after", after))
        if instant is not None
    ]
    yield Sentence(None, f"Its trigger has no occurrence then: {'; '.join(near) or 'nor at any other time'}.")
    for instant in (before, after):
        if instant is not None and (said := remark(trigger, instant)) is not None:
            yield Sentence(None, said)
    if window.since > facts.now:
        yield from (Sentence(None, text) for text in in_the_way(facts, schedule))


def _to_come(
    facts: ScheduleFacts, schedule: StoredSchedule, trigger: Trigger, occurrence: Instant
) -> Iterator[Sentence]:
    if schedule.next_at is None and stop(facts, schedule) is None:
        yield Sentence(None, ending(facts, schedule))
        return
    due = trigger.due(occurrence)
    jitter = "" if due == occurrence else f"; its job falls due at {moment(facts, due)}"
    when = f"{moment(facts, occurrence)}, {since(facts, occurrence)}"
    yield Sentence(None, f"That is to come: its occurrence at {when}{jitter}.")
    if (said := remark(trigger, occurrence)) is not None:
        yield Sentence(None, said)
    found = [*in_the_way(facts, schedule)] or ["Nothing is in its way now."]
    yield from (Sentence(None, text) for text in found)


def _no_trace(facts: ScheduleFacts, schedule: StoredSchedule, occurrence: Instant) -> Iterator[Sentence]:
    when = moment(facts, occurrence)
    if occurrence > schedule.fired_through:
        stopped = stop(facts, schedule)
        if stopped is None and schedule.next_at is None:
            yield Sentence(None, ending(facts, schedule))
            return
        if stopped is None:
            yield Sentence(None, overdue(facts, occurrence))
            found = [*in_the_way(facts, schedule)] or [
                "Nothing is in its way now: it is fired within seconds."
            ]
            yield from (Sentence(None, text) for text in found)
            return
        stopped_at = schedule.parked_at or schedule.paused_at or 0
        what = (
            "did not run" if stopped_at <= occurrence else "had not been fired when the schedule was stopped"
        )
        yield Sentence(None, f"Its occurrence at {when} {what}. {stopped}")
        yield Sentence(None, "What passes meanwhile is recorded as skipped when it goes on.")
        return
    if facts.oldest is None or (facts.oldest.span_first or facts.oldest.occurrence or 0) > occurrence:
        yield Sentence(
            None,
            f"No record of its occurrence at {when} is left: records that old have been pruned "
            "(see retention and keep_per_schedule).",
        )
    else:
        yield Sentence(
            None, f"There is no record of its occurrence at {when}: it was passed over or taken away."
        )


def _edits(facts: ScheduleFacts, window: Window) -> Iterator[Sentence]:
    """Yield the changes of the trigger that have to do with the time: only on one side of each does it occur then."""
    newer: Trigger | None = None
    for version in facts.versions():
        if version.entry is not None and version.trigger is not None and newer is not None:
            was, became = occurs(version.trigger, window), occurs(newer, window)
            if (was is None) is not (became is None):
                which = "the old one" if became is None else "the new one"
                yield Sentence(
                    version.entry.at,
                    f"{_change(version.entry)}, from {version.trigger.describe()} to {newer.describe()}: "
                    f"only {which} has an occurrence then.",
                )
        newer = version.trigger


def _change(entry: StoredEntry) -> str:
    if entry.verb == "delete":
        return f"It was deleted by {entry.who} and made anew"
    return f"Its trigger was changed by {entry.who}"
