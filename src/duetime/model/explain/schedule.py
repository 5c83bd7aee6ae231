"""Tells in sentences how a schedule stands, or what became of it at some time, and why."""

from __future__ import annotations

from collections.abc import Iterator

from duetime.model.explain.absence import absence
from duetime.model.explain.asking import Question, Window
from duetime.model.explain.exclusion import occurs
from duetime.model.explain.facts import Sentence
from duetime.model.explain.occurrences import ahead, reasons, summary, told
from duetime.model.explain.prospects import in_the_way, upcoming
from duetime.model.explain.schedule_facts import ScheduleFacts
from duetime.model.stored import StoredJob

MOST_TOLD = 5
"""How many records of the time that was asked about are told."""


def explain_schedule(facts: ScheduleFacts) -> tuple[Sentence, ...]:
    """Return what is known of the time that was asked about, or how the schedule stands now."""
    question = facts.question
    return tuple(_standing(facts) if question is None else _answer(facts, question))


def touching(facts: ScheduleFacts, window: Window) -> list[StoredJob]:
    """Return the records of a time: those in it, and one that stands for occurrences in it."""
    trigger = facts.trigger_at(window.since)
    # What one record stands for is told by the trigger; where that is not known, the span has to do.
    occurrence = window.since if trigger is None else occurs(trigger, window)
    return [
        record for record in facts.records if window.has(record.occurrence) or _stands_for(record, occurrence)
    ]


def _stands_for(record: StoredJob, occurrence: int | None) -> bool:
    if occurrence is None or record.occurrence is None or record.span_first is None:
        return False
    return record.span_first <= occurrence <= record.occurrence


def _standing(facts: ScheduleFacts) -> Iterator[Sentence]:
    schedule = facts.schedule
    if schedule is None:
        entry = facts.latest("delete")
        by = "" if entry is None else f" by {entry.who}"
        yield Sentence(None if entry is None else entry.at, f"Schedule {facts.name} was deleted{by}.")
    else:
        rule = "a trigger that cannot be read" if facts.trigger is None else facts.trigger.describe()
        yield Sentence(
            schedule.created_at,
            f"Schedule {facts.name} was created: task {schedule.task} in queue {schedule.queue}, {rule}.",
        )
    last = next((record for record in facts.before if not ahead(facts, record)), None)
    if last is not None:
        yield Sentence(last.finished_at or last.started_at or last.created_at, summary(facts, last))
        yield from reasons(facts, last)
    for record in reversed(facts.before):
        if ahead(facts, record):
            yield Sentence(record.created_at, summary(facts, record))
    if schedule is not None:
        yield from upcoming(facts, schedule)
        found = [*in_the_way(facts, schedule)] or ["Nothing is in its way."]
        yield from (Sentence(None, text) for text in found)


def _answer(facts: ScheduleFacts, question: Question) -> Iterator[Sentence]:
    yield Sentence(None, f"You ask about {question.text}.")
    if question.remark is not None:
        yield Sentence(None, question.remark)
    found = [record for window in question.windows for record in touching(facts, window)]
    for record in found[:MOST_TOLD]:
        yield from told(facts, record, briefly=len(found) > 1)
    if len(found) > MOST_TOLD:
        yield Sentence(
            None, f"Not told here: {len(found) - MOST_TOLD} more of that minute; ask to the second."
        )
    if not found:
        yield from absence(facts, question.windows[0])
