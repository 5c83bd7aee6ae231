"""The decision what a due schedule makes."""

from __future__ import annotations

from duetime.model.ids import new_job_id
from duetime.model.instants import Instant, Micros
from duetime.model.job import NewJob
from duetime.model.schedule import Firing, StoredSchedule
from duetime.model.states import State
from duetime.model.terms import Terms
from duetime.model.triggers import Trigger

MAX_MISSED = 100_000
"""How many occurrences one firing accounts for; the next firing takes up the rest."""


def fire(schedule: StoredSchedule, trigger: Trigger, *, now: Instant, ahead: Micros) -> Firing | None:
    """Decide what a schedule makes now; `None` when it is too early to tell."""
    occurrence = schedule.next_at
    if occurrence is None or occurrence > now + ahead:
        return None
    if occurrence <= schedule.fired_through:
        # An edit can name a time that the old trigger had already accounted for; go on after it.
        return _firing(schedule, trigger, schedule.fired_through, ())
    if occurrence > now:
        return _plant(schedule, trigger, occurrence)
    return _catch_up(schedule, trigger, occurrence, now)


def _plant(schedule: StoredSchedule, trigger: Trigger, occurrence: Instant) -> Firing | None:
    """Store the next occurrence before its time, unless a live job may forbid it at the instant."""
    if schedule.live and schedule.overlap != "allow":
        return None
    return _firing(schedule, trigger, occurrence, (_run(schedule, occurrence),))


def _catch_up(schedule: StoredSchedule, trigger: Trigger, first: Instant, now: Instant) -> Firing:
    """Run the latest due occurrence if it is recent enough; account for the earlier ones in one record."""
    due, more = _due_occurrences(trigger, first, now)
    latest = due[-1]
    jobs: list[NewJob] = []
    if more or now - latest > schedule.misfire_window:
        jobs.append(_skip(schedule, due, reason="misfire"))
    else:
        if len(due) > 1:
            jobs.append(_skip(schedule, due[:-1], reason="misfire"))
        if schedule.live and schedule.overlap == "skip":
            jobs.append(_skip(schedule, due[-1:], reason="overlap"))
        else:
            jobs.append(_run(schedule, latest))
    return _firing(schedule, trigger, latest, tuple(jobs))


def _due_occurrences(trigger: Trigger, first: Instant, now: Instant) -> tuple[list[Instant], bool]:
    """Return what has fallen due, and whether there is more than one firing accounts for."""
    due: list[Instant] = []
    occurrence: Instant | None = first
    while occurrence is not None and occurrence <= now:
        if len(due) == MAX_MISSED:
            return due, True
        due.append(occurrence)
        occurrence = trigger.after(occurrence)
    return due, False


def _firing(
    schedule: StoredSchedule, trigger: Trigger, fired_through: Instant, jobs: tuple[NewJob, ...]
) -> Firing:
    return Firing(
        name=schedule.name,
        rev=schedule.rev,
        expected=schedule.fired_through,
        fired_through=fired_through,
        next_at=trigger.after(fired_through),
        jobs=jobs,
    )


def _run(schedule: StoredSchedule, occurrence: Instant) -> NewJob:
    return NewJob(
        id=new_job_id(),
        task=schedule.task,
        payload=schedule.payload,
        due_at=occurrence,
        queue=schedule.queue,
        priority=schedule.priority,
        on_crash=schedule.on_crash,
        retries=schedule.retries,
        timeout=schedule.timeout,
        schedule=schedule.name,
        occurrence=occurrence,
        terms=Terms.from_text(schedule.terms),
    )


def _skip(schedule: StoredSchedule, occurrences: list[Instant], *, reason: str) -> NewJob:
    return NewJob(
        id=new_job_id(),
        task=schedule.task,
        payload=schedule.payload,
        due_at=occurrences[-1],
        queue=schedule.queue,
        priority=schedule.priority,
        schedule=schedule.name,
        occurrence=occurrences[-1],
        state=State.SKIPPED,
        reason=reason,
        span_first=occurrences[0],
        span_count=len(occurrences),
    )
