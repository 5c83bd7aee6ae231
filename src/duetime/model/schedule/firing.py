"""Decides what a due schedule makes, by its policies for misfires and overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import Final

from duetime.errors import InvalidOption
from duetime.model.job import NewJob
from duetime.model.schedule.occurrences import (
    OccurrenceSpan,
    first_occurrence_after,
    jobs_left,
    next_look_after,
    passed_occurrences,
    scheduled_job,
    searched_until,
    skipped_record,
)
from duetime.model.schedule.record import PAUSED, Firing, Misfire, Overlap, StoredSchedule, standstill
from duetime.model.text import counted
from duetime.model.time import Instant, Micros
from duetime.model.triggers.base import NoOccurrence, Trigger

MISFIRED = "misfire"
OVERLAPPED = "overlap"
TAKES_TURNS: Final[frozenset[Overlap]] = frozenset({"queue_one", "queue_all", "cancel_running"})
"""The policies under which jobs wait for each other."""


def fire(schedule: StoredSchedule, trigger: Trigger, *, now: Instant, ahead: Micros) -> Firing | None:
    """Decide what a schedule makes now; `None` when it is too early to tell."""
    if schedule.paused_at is not None:
        return _go_on(schedule, trigger, now=now, ahead=ahead)
    if (corrected := correct(schedule, trigger)) is not None:
        return corrected
    if schedule.next_at is None or schedule.next_at > now + ahead:
        return None
    if searched_until(trigger, schedule.next_at) is not None:
        # There is no occurrence up to this time: the search goes on from here.
        return _firing(schedule, trigger, schedule.next_at, ())
    return _decide(schedule, trigger, schedule.next_at, now=now)


def correct(schedule: StoredSchedule, trigger: Trigger) -> Firing | None:
    """Return a correction if the trigger no longer has the stored next time; `None` if it has.

    The data of its zone may have changed since, or an edit may have named a time that was already accounted for. One
    that has come to the end of its number of jobs stays there, even if the code that made them did not count.
    """
    ended = schedule.next_at is None and trigger.times is not None
    if ended or standstill(schedule) is not None:
        return None
    found = first_occurrence_after(trigger, schedule.fired_through, made=schedule.made)
    agrees = _agrees(schedule.next_at, found)
    return None if agrees else _firing(schedule, trigger, schedule.fired_through, ())


def _agrees(next_at: Instant | None, found: Instant | NoOccurrence) -> bool:
    """Whether a schedule has the next time that its trigger gives, and has ended if that is proved."""
    if not isinstance(found, NoOccurrence):
        return next_at == found
    if found.proved:
        return next_at is None
    # A time that another process has set may be earlier: it may know less of the trigger.
    return next_at is not None and next_at <= found.through


def _decide(
    schedule: StoredSchedule, trigger: Trigger, occurrence: Instant, *, now: Instant
) -> Firing | None:
    if schedule.pause_after is not None and schedule.streak >= schedule.pause_after:
        # What is due waits until the schedule is resumed.
        paused = _firing(schedule, trigger, schedule.fired_through, ())
        return replace(
            paused, next_at=schedule.next_at, pause=f"{counted(schedule.streak, 'failure')} in a row"
        )
    if occurrence <= now:
        return _catch_up(schedule, trigger, now)
    if not may_plant(schedule):
        return None
    return _firing(schedule, trigger, occurrence, _runs(schedule, trigger, [occurrence]))


def _go_on(schedule: StoredSchedule, trigger: Trigger, *, now: Instant, ahead: Micros) -> Firing | None:
    """Resume a schedule that was paused until now; what passed meanwhile shares one record."""
    if schedule.paused_until is None or schedule.paused_until > now:
        return None
    floor = max(schedule.fired_through, schedule.paused_until - 1)
    jobs: tuple[NewJob, ...] = ()
    if jobs_left(trigger, made=schedule.made) != 0:
        meanwhile = passed_occurrences(trigger, after=schedule.fired_through, until=floor)
        if meanwhile.earlier is not None:
            jobs = (skipped_record(schedule, meanwhile.earlier, reason=PAUSED),)
        if meanwhile.through < floor:
            # It is still paused, and is looked at again at once.
            return replace(_firing(schedule, trigger, meanwhile.through, jobs), next_at=floor)
    going = replace(schedule, paused_at=None, paused_until=None, fired_through=floor, streak=0)
    going = replace(going, next_at=next_look_after(trigger, floor, made=going.made))
    then = fire(going, trigger, now=now, ahead=ahead) or _firing(going, trigger, floor, ())
    return replace(then, expected=schedule.fired_through, jobs=jobs + then.jobs, resumes=True)


def _catch_up(schedule: StoredSchedule, trigger: Trigger, now: Instant) -> Firing:
    """Make jobs for the occurrences that fell due, as far as the policies allow, and a few records for the rest."""
    wanted = schedule.misfire_limit if schedule.misfire == "all" else 1
    if (most := jobs_left(trigger, made=schedule.made)) is not None:
        wanted = min(wanted, most)
    due = passed_occurrences(trigger, after=schedule.fired_through, until=now, latest=wanted)
    if not due.latest:
        # There are more than one walk covers, or the search has not found one yet.
        return _firing(schedule, trigger, due.through, _records(schedule, MISFIRED, due.earlier))
    timely = list(dropwhile(lambda o: now - trigger.due(o) > schedule.misfire_window, due.latest))
    before, run, behind = admit(schedule, timely)
    jobs = (
        *_records(schedule, MISFIRED, due.earlier, due.latest[: len(due.latest) - len(timely)]),
        *_records(schedule, OVERLAPPED, None, before),
        *_runs(schedule, trigger, run),
        *_records(schedule, OVERLAPPED, None, behind),
    )
    cancels = schedule.overlap == "cancel_running" and schedule.live > 0 and bool(run)
    return _firing(schedule, trigger, due.latest[-1], jobs, cancels=cancels)


def _records(
    schedule: StoredSchedule, reason: str, span: OccurrenceSpan | None, more: Sequence[Instant] = ()
) -> tuple[NewJob, ...]:
    """Return the one record of a span and of the occurrences after it, if there are any."""
    if more:
        first, count = (span.first, span.count) if span else (more[0], 0)
        span = OccurrenceSpan(first, more[-1], count + len(more))
    return () if span is None else (skipped_record(schedule, span, reason=reason),)


def _runs(schedule: StoredSchedule, trigger: Trigger, occurrences: Sequence[Instant]) -> tuple[NewJob, ...]:
    turns = in_turn(schedule, several=len(occurrences) > 1)
    return tuple(scheduled_job(schedule, at, due_at=trigger.due(at), in_turn=turns) for at in occurrences)


def _firing(
    schedule: StoredSchedule,
    trigger: Trigger,
    fired_through: Instant,
    jobs: tuple[NewJob, ...],
    *,
    cancels: bool = False,
) -> Firing:
    made = schedule.made + sum(not job.state.terminal for job in jobs)
    return Firing(
        name=schedule.name,
        rev=schedule.rev,
        expected=schedule.fired_through,
        fired_through=fired_through,
        next_at=next_look_after(trigger, fired_through, made=made),
        jobs=jobs,
        cancels=cancels,
    )


def admit(
    schedule: StoredSchedule, occurrences: Sequence[Instant]
) -> tuple[Sequence[Instant], Sequence[Instant], Sequence[Instant]]:
    """Choose the occurrences that get a job now; return those before them, these, and those after them."""
    if schedule.overlap == "cancel_running":
        # Each of them would cancel the one before.
        return occurrences[:-1], occurrences[-1:], []
    room = _room(schedule)
    return [], occurrences[:room], [] if room is None else occurrences[room:]


def may_plant(schedule: StoredSchedule) -> bool:
    """Whether a job can be stored ahead of its time: not if a job that is live now may forbid it then."""
    if not schedule.live:
        return True
    if schedule.pause_after is not None or schedule.overlap == "cancel_running":
        return False
    return _room(schedule) != 0


def in_turn(schedule: StoredSchedule, *, several: bool) -> bool:
    """Whether jobs are to wait for each other: by the policy, or since several are made at once."""
    return schedule.overlap in TAKES_TURNS or (several and schedule.overlap == "skip")


def check_turns(overlap: Overlap, misfire: Misfire, *, task: str, limited: bool) -> None:
    """Refuse policies under which the jobs of a limited task would have to wait at two gates."""
    if not limited:
        return
    misfit = f"does not go with limit= or rate=, which task {task} has: a job waits for one thing"
    if overlap in TAKES_TURNS:
        raise InvalidOption(f"overlap={overlap!r} {misfit}; use overlap='skip' or 'allow'")
    if misfire == "all" and overlap == "skip":
        raise InvalidOption(f"misfire='all' {misfit}; use overlap='allow' or misfire='latest'")


def _room(schedule: StoredSchedule) -> int | None:
    """How many jobs may be made; `None` for any number."""
    match schedule.overlap:
        case "skip":
            return 0 if schedule.live else None
        case "queue_one":
            return max(0, 2 - schedule.live)
        case "queue_all":
            return max(0, 1 + (schedule.overlap_limit or 0) - schedule.live)
        case _:
            return None
