"""What becomes of an occurrence: a job, or a record that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from duetime.model.ids import new_job_id
from duetime.model.instants import Instant
from duetime.model.job import NewJob
from duetime.model.limit import schedule_gate
from duetime.model.schedule import StoredSchedule
from duetime.model.states import State
from duetime.model.terms import Terms

MOST_IN_A_SPAN: Final = 2**31 - 1
"""What every database can write; only weeks of a pause have more, of a schedule that comes every millisecond."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some occurrences in a row."""

    first: Instant
    last: Instant
    count: int


def run_of(
    schedule: StoredSchedule, occurrence: Instant | None, *, due_at: Instant | None, in_turn: bool
) -> NewJob:
    """Return a job of a schedule; one that runs in turn starts when no other job of it runs anywhere."""
    terms = Terms.from_text(schedule.terms)
    if in_turn and terms.gate is None:
        terms = replace(terms, gate=schedule_gate(schedule.name))
    return NewJob(
        id=new_job_id(),
        task=schedule.task,
        payload=schedule.payload,
        due_at=due_at,
        queue=schedule.queue,
        priority=schedule.priority,
        on_crash=schedule.on_crash,
        retries=schedule.retries,
        timeout=schedule.timeout,
        schedule=schedule.name,
        occurrence=occurrence,
        terms=terms,
    )


def made_up(schedule: StoredSchedule, occurrence: Instant, *, in_turn: bool) -> NewJob:
    """Return a job for an occurrence that the schedule has passed; the next occurrence does not end it."""
    return run_of(schedule, occurrence, due_at=None, in_turn=in_turn)._replace(span_first=occurrence)


def skipped(schedule: StoredSchedule, span: Span, *, reason: str) -> NewJob:
    """Return the one record of occurrences that do not run."""
    return NewJob(
        id=new_job_id(),
        task=schedule.task,
        payload=schedule.payload,
        due_at=span.last,
        queue=schedule.queue,
        priority=schedule.priority,
        schedule=schedule.name,
        occurrence=span.last,
        state=State.SKIPPED,
        reason=reason,
        span_first=span.first,
        span_count=min(span.count, MOST_IN_A_SPAN),
    )
