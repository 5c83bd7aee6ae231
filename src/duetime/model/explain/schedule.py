"""Tells in sentences how a schedule stands, or what became of it at some time, and why."""

from __future__ import annotations

from collections.abc import Iterator

from duetime.model.explain.facts import (
    ScheduleFacts,
    ScheduleQuestion,
    Sentence,
    TimeRange,
    Told,
    before_and_after,
    first_line,
    length,
    sentences,
)
from duetime.model.explain.job import hindrances, job_story
from duetime.model.schedule.occurrences import searched_until
from duetime.model.schedule.record import StoredSchedule
from duetime.model.states import State
from duetime.model.stored.audit import StoredAuditEntry
from duetime.model.stored.jobs import StoredJob
from duetime.model.text import counted
from duetime.model.time import LONGEST_DURATION, Instant, Micros, describe_duration
from duetime.model.triggers.base import NoOccurrence, Trigger
from duetime.model.triggers.combined import Between, CombinedTrigger, Except
from duetime.model.triggers.preview import clock_change_note
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger, trigger_if_readable
from duetime.model.triggers.working_days import Rolled

MOST_TOLD = 5
"""How many records of the time that was asked about are told."""


def schedule_explanation(facts: ScheduleFacts) -> tuple[Sentence, ...]:
    """Return what is known of the time that was asked about, or how the schedule stands now."""
    return sentences(_standing(facts) if facts.question is None else _answer(facts, facts.question))


def records_touching(facts: ScheduleFacts, window: TimeRange) -> list[StoredJob]:
    """Return the records of a time: those in it, and one that stands for occurrences in it."""
    trigger = facts.trigger_at(window.since)
    # What one record stands for is told by the trigger; where that is not known, the span has to do.
    at = window.since if trigger is None else occurrence_in(trigger, window)

    def touches(record: StoredJob) -> bool:
        first, last = record.span_first, record.occurrence
        spans = first is not None and last is not None and at is not None and first <= at <= last
        return spans or window.has(last)

    return [record for record in facts.records if touches(record)]


def _standing(facts: ScheduleFacts) -> Iterator[Told]:
    schedule = facts.schedule
    if schedule is None:
        entry = facts.latest("delete")
        at = None if entry is None else entry.at
        yield Sentence(at, f"Schedule {facts.name} was deleted{_by(entry)}.")
    else:
        rule = "a trigger that cannot be read" if facts.trigger is None else facts.trigger.describe()
        what = f"task {schedule.task} in queue {schedule.queue}, {rule}"
        yield Sentence(schedule.created_at, f"Schedule {facts.name} was created: {what}.")
    last = next((record for record in facts.before if not is_ahead(facts, record)), None)
    if last is not None:
        yield Sentence(last.finished_at or last.started_at or last.created_at, record_summary(facts, last))
        yield from _why_skipped(facts, last)
    for record in reversed(facts.before):
        if is_ahead(facts, record):
            yield Sentence(record.created_at, record_summary(facts, record))
    if schedule is not None:
        yield from next_runs(facts, schedule)
        yield from [*in_the_way(facts, schedule)] or ["Nothing is in its way."]


def _answer(facts: ScheduleFacts, question: ScheduleQuestion) -> Iterator[Told]:
    yield f"You ask about {question.text}."
    if question.remark is not None:
        yield question.remark
    found = [record for window in question.windows for record in records_touching(facts, window)]
    for record in found[:MOST_TOLD]:
        yield from told_record(facts, record, briefly=len(found) > 1)
    if len(found) > MOST_TOLD:
        yield f"Not told here: {len(found) - MOST_TOLD} more of that minute; ask to the second."
    if not found:
        yield from why_no_record(facts, question.windows[0])


_MADE = {
    State.PENDING: "waits",
    State.RUNNING: "runs",
    State.SUCCEEDED: "ran and succeeded",
    State.FAILED: "failed",
    State.CANCELLED: "was cancelled",
    State.SKIPPED: "was skipped",
}


def told_record(facts: ScheduleFacts, record: StoredJob, *, briefly: bool) -> Iterator[Told]:
    """Tell of one record all that is known; briefly: of a job that has ended no more than that."""
    place = _place(record)
    yield Sentence(place, record_summary(facts, record))
    if (trigger := facts.trigger_at(place)) is not None:
        yield from remarks(trigger, place)
    if was_made(record) and (job := facts.jobs.get(record.id)) is not None:
        yield from () if briefly else job_story(job)
        yield from hindrances(job)
    yield from _why_skipped(facts, record)


def record_summary(facts: ScheduleFacts, record: StoredJob) -> str:
    """Say in one sentence what became of it."""
    when = facts.moment(_place(record))
    if was_made(record):
        what = f"The job of its occurrence at {when} {_MADE[record.state]}: {record.id}"
        if record.started_at is None:
            return f"{what}."
        late = length(max(0, record.started_at - _place(record)))
        return f"{what}, started {late} after its time on {facts.worker_name(record.worker)}."
    if record.span_count > 1:
        span = f"{record.span_count:,} occurrences, from {facts.moment(_first(record))} to {when}"
        return f"It was skipped: one record stands for {span}."
    if is_ahead(facts, record):
        return f"Its occurrence at {when} will not run: {first_line(record.reason or 'skipped')}."
    return f"Its occurrence at {when} was skipped."


def was_made(record: StoredJob) -> bool:
    """Whether there was a job, however it ended; not only a record that there was none."""
    return record.state is not State.SKIPPED or record.reason == "expired"


def is_ahead(facts: ScheduleFacts, record: StoredJob) -> bool:
    """Whether the time of a record is still to come."""
    return _place(record) > facts.now


def _place(record: StoredJob) -> Instant:
    """Where a record stands among the others."""
    return record.due_at if record.occurrence is None else record.occurrence


def _first(record: StoredJob) -> Instant:
    return record.span_first or _place(record)


def _by(entry: StoredAuditEntry | None) -> str:
    return "" if entry is None else f" by {entry.who}"


def _why_skipped(facts: ScheduleFacts, record: StoredJob) -> Iterator[Told]:
    """Tell why an occurrence made no job, if its summary does not."""
    if was_made(record) or is_ahead(facts, record):
        return
    at, reason = record.created_at, record.reason or ""
    match reason:
        case "misfire":
            yield Sentence(at, _misfire(facts, record))
        case "overlap":
            yield Sentence(at, _overlap(facts, record))
        case "paused" | "parked":
            verb = "pause" if reason == "paused" else "park"
            if (entry := facts.latest(verb, until=at)) is None:
                yield Sentence(at, f"The schedule was {reason} then.")
            else:
                why = entry.detail.get("reason")
                because = f": {first_line(why)}" if isinstance(why, str) and why else ""
                yield Sentence(entry.at, f"The schedule was {reason}{_by(entry)}{because}.")
            yield Sentence(at, "It went on, and what had passed meanwhile was recorded as skipped.")
        case "edited":
            changes = (one for one in facts.entries if one.at <= at and before_and_after(one, "trigger"))
            by = _by(next(changes, None))
            yield Sentence(at, f"The schedule was changed{by} before anyone had fired it.")
        case _:
            yield Sentence(at, f"{first_line(reason[:1].upper() + reason[1:])}.")


def _misfire(facts: ScheduleFacts, record: StoredJob) -> str:
    first, noticed = facts.moment(_first(record)), record.created_at
    outage = "An outage: no one" if record.span_count > 1 else "No one"
    told = f"{outage} fired it from {first} until {facts.moment(noticed)}, when this was noticed"
    policy = facts.value_at("misfire", noticed)
    if policy is None:
        return f"{told}."
    window: Micros = facts.value_at("misfire_window", noticed) or 0
    late = describe_duration(window)
    within = "" if window >= LONGEST_DURATION else f", and only within a window of {late}"
    rule = {
        "skip": f"what is missed by more than its window of {late} does not run",
        "all": f"of all that was missed the latest {facts.value_at('misfire_limit', noticed)} run{within}",
    }.get(policy, f"of all that was missed only the latest runs{within}")
    return f"{told}; misfire is {policy}: {rule}."


def _overlap(facts: ScheduleFacts, record: StoredJob) -> str:
    noticed, told = record.created_at, "A job before it"
    for job in facts.before:
        lived = job.finished_at is None or job.finished_at > noticed
        if lived and was_made(job) and _place(job) < _place(record):
            since = "" if job.started_at is None else f", which ran since {facts.moment(job.started_at)},"
            told = f"Job {job.id} of its occurrence at {facts.moment(_place(job))}{since}"
            break
    policy = facts.value_at("overlap", noticed)
    if policy is None:
        return f"{told} had not ended."
    rule = {
        "skip": "it is not started while one before it lives",
        "queue_one": "one may wait for the one that runs, and one did",
        "queue_all": f"at most {facts.value_at('overlap_limit', noticed)} may wait, and they did",
    }.get(policy, "the one after it was in its way")
    return f"{told} had not ended; overlap is {policy}: {rule}."


_CREATE = ("declare", "put")
"""What adds a schedule; with details it changes one."""


def why_no_record(facts: ScheduleFacts, window: TimeRange) -> Iterator[Told]:
    """Yield why nothing is recorded there, or what is to come."""
    schedule = facts.schedule
    if schedule is None:
        yield from _deleted(facts, window)
    elif window.until <= schedule.created_at:
        yield from _too_early(facts, schedule, window)
    elif (trigger := facts.trigger_at(window.since)) is None:
        yield "Which occurrences it had then cannot be told: its trigger of that time cannot be read."
    elif (occurrence := occurrence_in(trigger, window)) is None:
        yield from _no_occurrence(facts, schedule, trigger, window)
    elif occurrence < schedule.created_at:
        yield from _too_early(facts, schedule, window)
    elif occurrence > facts.now:
        yield from _to_come(facts, schedule, trigger, occurrence)
    else:
        yield from _no_trace(facts, schedule, occurrence)
    yield from _edits(facts, window)


def _deleted(facts: ScheduleFacts, window: TimeRange) -> Iterator[Told]:
    entry = facts.latest("delete")
    if entry is None:
        yield "The schedule does not exist any more, and who deleted it is not known any more."
    else:
        yield Sentence(entry.at, f"The schedule was deleted by {entry.who}.")
    if entry is not None and window.since < entry.at:
        occurrence = occurrence_in(facts.trigger_at(window.since), window)
        had = "" if occurrence is None else f" of its occurrence at {facts.moment(occurrence)}"
        yield f"There is no record{had} from before."


def _too_early(facts: ScheduleFacts, schedule: StoredSchedule, window: TimeRange) -> Iterator[Told]:
    created = schedule.created_at
    entry = next((one for one in facts.entries if one.verb in _CREATE and not one.detail), None)
    by = _by(entry) if entry is not None and entry.at >= created else ""
    before = length(created - window.since)
    yield Sentence(created, f"The schedule was created{by}, {before} after the time that you ask about.")
    if (deleted := facts.latest("delete", until=created)) is not None:
        yield Sentence(deleted.at, f"Another of the same name was deleted by {deleted.who}.")


def _no_occurrence(
    facts: ScheduleFacts, schedule: StoredSchedule, trigger: Trigger, window: TimeRange
) -> Iterator[Told]:
    before, found = trigger.last(0, window.since - 1), trigger.first(window.since - 1)
    after = None if isinstance(found, NoOccurrence) else found
    if (why := taken_away(facts, trigger, window)) is not None:
        yield why
    if isinstance(found, NoOccurrence) and not found.proved:
        yield f"No occurrence is found from then up to {facts.moment(found.through)}."
    elif after is None and window.since <= facts.now:
        last = "" if before is None else f": the last occurrence of its trigger was at {facts.moment(before)}"
        yield f"It had ended by then{last}."
    else:
        near = [f"the one before is at {facts.moment(before)}"] if before is not None else []
        near += [f"the one after is at {facts.moment(after)}"] if after is not None else []
        yield f"Its trigger has no occurrence then: {'; '.join(near) or 'nor at any other time'}."
        yield from remarks(trigger, before, after)
        if window.since > facts.now:
            yield from in_the_way(facts, schedule)


def _to_come(
    facts: ScheduleFacts, schedule: StoredSchedule, trigger: Trigger, occurrence: Instant
) -> Iterator[Told]:
    if schedule.next_at is None and why_stopped(facts, schedule) is None:
        yield why_ended(facts, schedule)
    else:
        due = trigger.due(occurrence)
        jitter = "" if due == occurrence else f"; its job falls due at {facts.moment(due)}"
        yield f"That is to come: its occurrence at {_when(facts, occurrence)}{jitter}."
        yield from remarks(trigger, occurrence)
        yield from [*in_the_way(facts, schedule)] or ["Nothing is in its way now."]


def _no_trace(facts: ScheduleFacts, schedule: StoredSchedule, occurrence: Instant) -> Iterator[Told]:
    when, stopped, oldest = facts.moment(occurrence), why_stopped(facts, schedule), facts.oldest
    if occurrence <= schedule.fired_through:
        if oldest is None or (oldest.span_first or oldest.occurrence or 0) > occurrence:
            pruned = "records that old have been pruned (see retention and keep_per_schedule)"
            yield f"No record of its occurrence at {when} is left: {pruned}."
        else:
            yield f"There is no record of its occurrence at {when}: it was passed over or taken away."
    elif stopped is not None:
        stopped_at = schedule.parked_at or schedule.paused_at or 0
        late = "had not been fired when the schedule was stopped"
        fate = "did not run" if stopped_at <= occurrence else late
        yield f"Its occurrence at {when} {fate}. {stopped}"
        yield "What passes meanwhile is recorded as skipped when it goes on."
    elif schedule.next_at is None:
        yield why_ended(facts, schedule)
    else:
        yield overdue(facts, occurrence)
        nothing = "Nothing is in its way now: it is fired within seconds."
        yield from [*in_the_way(facts, schedule)] or [nothing]


def _when(facts: ScheduleFacts, instant: Instant) -> str:
    return f"{facts.moment(instant)}, {facts.since(instant)}"


def _edits(facts: ScheduleFacts, window: TimeRange) -> Iterator[Told]:
    """Yield the changes of the trigger that have to do with the time: only on one side of each does it occur then."""
    newer: Trigger | None = None
    for value, _, entry in facts.versions("trigger"):
        older = trigger_if_readable(value)
        if entry is not None and older is not None and newer is not None:
            was, became = occurrence_in(older, window), occurrence_in(newer, window)
            if (was is None) is not (became is None):
                deleted = f"It was deleted by {entry.who} and made anew"
                change = deleted if entry.verb == "delete" else f"Its trigger was changed by {entry.who}"
                which = "the old one" if became is None else "the new one"
                text = f"{change}, from {older.describe()} to {newer.describe()}"
                yield Sentence(entry.at, f"{text}: only {which} has an occurrence then.")
        newer = older


def occurrence_in(trigger: Trigger | None, window: TimeRange) -> Instant | None:
    """Return the first occurrence in a stretch of time, if there is one."""
    if trigger is None:
        return None
    first = trigger.first(window.since - 1, until=window.until)
    return None if isinstance(first, NoOccurrence) or not window.has(first) else first


def taken_away(facts: ScheduleFacts, trigger: Trigger, window: TimeRange) -> str | None:
    """Say which calendar, start or end keeps an occurrence from coming; `None` when there is none to keep."""
    for part in trigger.inner() if isinstance(trigger, CombinedTrigger) else ():
        occurrence = occurrence_in(part, window)
        found = None
        match trigger:
            case _ if occurrence is None:
                found = taken_away(facts, part, window)
            case Except(calendar=calendar) if (why := calendar.why(occurrence)) is not None:
                found = f"Its calendar excludes {facts.moment(occurrence)}: {why}."
            case Rolled() if (moved := trigger.moved(occurrence)) != occurrence:
                why = trigger.calendar.why(occurrence)
                found = (
                    f"Its occurrence at {facts.moment(occurrence)} is moved to {facts.moment(moved)}: {why}."
                )
            case Between(start=int(start)) if occurrence < start:
                found = f"It does not begin before {facts.moment(start)}."
            case Between(end=int(end)) if occurrence > end:
                found = f"It does not go on after {facts.moment(end)}."
            case _:
                pass
        if found is not None:
            return found
    return None


_SHOWN = 3


def in_the_way(facts: ScheduleFacts, schedule: StoredSchedule) -> Iterator[str]:
    """Yield everything that keeps its next occurrence from running."""
    trigger = schedule_trigger(schedule)
    if facts.problem is not None:
        yield f"It waits, since {facts.problem}. Delete it and put it again."
    elif isinstance(trigger, UnreadableTrigger):
        yield f"It waits, since it has {trigger.describe()}. Put it again, or delete it."
    if (stopped := why_stopped(facts, schedule)) is not None:
        yield stopped
    elif schedule.next_at is None:
        yield why_ended(facts, schedule)
        return
    elif not facts.fleet.alive:
        yield (
            "No one fires schedules: no worker is alive. Start one with: duetime worker MODULE:SCHEDULER, "
            "or only fire schedules with: duetime scheduler MODULE:SCHEDULER"
        )
    elif not facts.fleet.fires:
        told = f"{facts.worker_names(facts.fleet.alive)} was told to leave them alone"
        yield (
            f"No one fires schedules: {told}. Start a worker without --no-schedules, or: "
            "duetime scheduler MODULE:SCHEDULER"
        )
    yield from facts.by_queue(schedule.queue)
    if facts.fleet.alive:
        yield from facts.by_workers(queue=schedule.queue, task=schedule.task)


def why_stopped(facts: ScheduleFacts, schedule: StoredSchedule) -> str | None:
    """Say that it is paused or parked, with who, why and until when."""
    if schedule.parked_at is not None:
        return (
            f"It is parked since {facts.moment(schedule.parked_at)}: no code declares it any more. "
            "Declare it again, put it, or delete it."
        )
    if schedule.paused_at is None:
        return None
    by = f" by {schedule.paused_by}" if schedule.paused_by else ""
    why = f": {first_line(schedule.paused_reason)}" if schedule.paused_reason else ""
    until = f", until {facts.moment(schedule.paused_until)}" if schedule.paused_until is not None else ""
    return f"It is paused since {facts.moment(schedule.paused_at)}{by}{until}{why}."


def why_ended(facts: ScheduleFacts, schedule: StoredSchedule) -> str:
    """Say why nothing comes any more."""
    trigger = facts.trigger
    if trigger is not None and trigger.times is not None and schedule.made >= trigger.times:
        return f"It has ended: it was to make {counted(trigger.times, 'job')}, and has."
    last = None if trigger is None else trigger.last(0, facts.now)
    if last is None:
        return "It has ended: its trigger has no occurrence any more."
    return f"It has ended: the last occurrence of its trigger was at {facts.moment(last)}."


def next_runs(facts: ScheduleFacts, schedule: StoredSchedule) -> Iterator[Told]:
    """Yield what comes next, with what the clock does to it."""
    trigger, occurrence = facts.trigger, schedule.next_at
    if trigger is None or occurrence is None:
        return
    if (through := searched_until(trigger, occurrence)) is not None:
        yield f"No next occurrence is found up to {facts.moment(through)}. The search goes on then."
        return
    stopped = why_stopped(facts, schedule) is not None
    again = facts.now if schedule.paused_until is None else schedule.paused_until
    if stopped and occurrence <= again:
        # What comes during a pause is not overdue: it does not run.
        occurrence = trigger.after(again)
    if occurrence is None:
        return
    if occurrence <= facts.now:
        yield overdue(facts, occurrence)
        return
    coming = [occurrence]
    while len(coming) < _SHOWN and (following := trigger.after(coming[-1])) is not None:
        coming.append(following)
    verb = "would run" if stopped and schedule.paused_until is None else "runs"
    then = f"; then at {', '.join(map(facts.moment, coming[1:]))}" if coming[1:] else ""
    yield f"It {verb} next at {_when(facts, occurrence)}{then}."
    yield from remarks(trigger, *coming)


def overdue(facts: ScheduleFacts, occurrence: Instant) -> str:
    """Say that no one has fired an occurrence whose time has come."""
    return f"Its occurrence at {_when(facts, occurrence)}, has not been fired yet."


def remarks(trigger: Trigger, *occurrences: Instant | None) -> Iterator[str]:
    """Yield what the clock does to occurrences, if anything."""
    for occurrence in occurrences:
        note = None if occurrence is None else clock_change_note(trigger, occurrence)
        if note is not None:
            yield f"{note[0].upper()}{note[1:]}."
