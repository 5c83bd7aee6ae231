"""What became of an occurrence that left a record."""

from __future__ import annotations

from collections.abc import Iterator

from duetime.model.durations import LONGEST, describe
from duetime.model.explain.facts import Sentence
from duetime.model.explain.hindrances import hindrances
from duetime.model.explain.prospects import remark
from duetime.model.explain.schedule_facts import ScheduleFacts, before_and_after
from duetime.model.explain.story import story
from duetime.model.explain.words import first_line, length, moment, worker_name
from duetime.model.instants import Instant, Micros
from duetime.model.states import State
from duetime.model.stored import StoredJob

_MADE = {
    State.PENDING: "waits",
    State.RUNNING: "runs",
    State.SUCCEEDED: "ran and succeeded",
    State.FAILED: "failed",
    State.CANCELLED: "was cancelled",
    State.SKIPPED: "was skipped",
}


def told(facts: ScheduleFacts, record: StoredJob, *, briefly: bool) -> Iterator[Sentence]:
    """Tell of one record all that is known; briefly: of a job that has ended no more than that."""
    yield Sentence(_place(record), summary(facts, record))
    trigger = facts.trigger_at(_place(record))
    if trigger is not None and (said := remark(trigger, _place(record))) is not None:
        yield Sentence(None, said)
    if was_made(record):
        if (job := facts.jobs.get(record.id)) is not None:
            yield from () if briefly else story(job)
            yield from hindrances(job)
        return
    yield from reasons(facts, record)


def reasons(facts: ScheduleFacts, record: StoredJob) -> Iterator[Sentence]:
    """Tell why an occurrence made no job, if its summary does not."""
    if not (was_made(record) or ahead(facts, record)):
        yield from (Sentence(at, text) for at, text in _why_skipped(facts, record))


def summary(facts: ScheduleFacts, record: StoredJob) -> str:
    """Say in one sentence what became of it."""
    when = moment(facts, _place(record))
    if not was_made(record):
        if record.span_count > 1:
            return (
                f"It was skipped: one record stands for {record.span_count:,} occurrences, from {_first(facts, record)} "
                f"to {when}."
            )
        if ahead(facts, record):
            return f"Its occurrence at {when} will not run: {first_line(record.reason or 'skipped')}."
        return f"Its occurrence at {when} was skipped."
    what = f"The job of its occurrence at {when} {_MADE[record.state]}: {record.id}"
    if record.started_at is None:
        return f"{what}."
    late = record.started_at - _place(record)
    return f"{what}, started {length(max(0, late))} after its time on {worker_name(facts, record.worker)}."


def was_made(record: StoredJob) -> bool:
    """Whether there was a job, however it ended; not only a record that there was none."""
    return record.state is not State.SKIPPED or record.reason == "expired"


def ahead(facts: ScheduleFacts, record: StoredJob) -> bool:
    """Whether the time of a record is still to come."""
    return _place(record) > facts.now


def _why_skipped(facts: ScheduleFacts, record: StoredJob) -> Iterator[tuple[Instant, str]]:
    match record.reason or "":
        case "misfire":
            yield record.created_at, _misfire(facts, record)
        case "overlap":
            yield record.created_at, _overlap(facts, record)
        case "paused" | "parked" as why:
            yield from _stopped(facts, record, why)
        case "edited":
            changes = (e for e in facts.entries if before_and_after(e, "trigger"))
            entry = next((change for change in changes if change.at <= record.created_at), None)
            who = "" if entry is None else f" by {entry.who}"
            yield record.created_at, f"The schedule was changed{who} before anybody had fired it."
        case reason:
            yield record.created_at, f"{first_line(reason[:1].upper() + reason[1:])}."


def _misfire(facts: ScheduleFacts, record: StoredJob) -> str:
    first, noticed = record.span_first or _place(record), record.created_at
    outage = "An outage: nobody" if record.span_count > 1 else "Nobody"
    told = (
        f"{outage} fired it from {moment(facts, first)} until {moment(facts, noticed)}, when this was noticed"
    )
    policy = facts.value_at("misfire", noticed)
    if policy is None:
        return f"{told}."
    window: Micros = facts.value_at("misfire_window", noticed) or 0
    within = "" if window >= LONGEST else f", and only within a window of {describe(window)}"
    rule = {
        "skip": f"what is missed by more than its window of {describe(window)} does not run",
        "all": f"of all that was missed the latest {facts.value_at('misfire_limit', noticed)} run{within}",
    }.get(policy, f"of all that was missed only the latest runs{within}")
    return f"{told}; misfire is {policy}: {rule}."


def _overlap(facts: ScheduleFacts, record: StoredJob) -> str:
    live = next((job for job in facts.before if _lived(job, record)), None)
    told = "A job before it" if live is None else _named(facts, live)
    policy = facts.value_at("overlap", record.created_at)
    if policy is None:
        return f"{told} had not ended."
    rule = {
        "skip": "it is not started while one before it lives",
        "queue_one": "one may wait for the one that runs, and one did",
        "queue_all": f"at most {facts.value_at('overlap_limit', record.created_at)} may wait, and so many did",
    }.get(policy, "the one after it was in its way")
    return f"{told} had not ended; overlap is {policy}: {rule}."


def _lived(job: StoredJob, record: StoredJob) -> bool:
    """Whether a job was pending or running when another occurrence was skipped."""
    return (
        was_made(job)
        and _place(job) < _place(record)
        and (job.finished_at is None or job.finished_at > record.created_at)
    )


def _named(facts: ScheduleFacts, job: StoredJob) -> str:
    text = f"Job {job.id} of its occurrence at {moment(facts, _place(job))}"
    if job.started_at is None:
        return text
    return f"{text}, which ran since {moment(facts, job.started_at)},"


def _stopped(facts: ScheduleFacts, record: StoredJob, why: str) -> Iterator[tuple[Instant, str]]:
    """Say who stopped the schedule, and when it went on."""
    verb = "pause" if why == "paused" else "park"
    entry = facts.latest(verb, until=record.created_at)
    if entry is None:
        yield record.created_at, f"The schedule was {why} then."
    else:
        reason = entry.detail.get("reason")
        because = f": {first_line(reason)}" if isinstance(reason, str) and reason else ""
        yield entry.at, f"The schedule was {why} by {entry.who}{because}."
    yield record.created_at, "It went on, and what had passed meanwhile was recorded as skipped."


def _first(facts: ScheduleFacts, record: StoredJob) -> str:
    return moment(facts, record.span_first or _place(record))


def _place(record: StoredJob) -> Instant:
    """Where a record stands among the others."""
    return record.due_at if record.occurrence is None else record.occurrence
