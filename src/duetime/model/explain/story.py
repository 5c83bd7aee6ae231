"""What happened to a job so far."""

from __future__ import annotations

from collections.abc import Iterator

from duetime.model.explain.facts import Facts, Sentence
from duetime.model.explain.words import first_line, length, moment, worker_name
from duetime.model.states import State
from duetime.model.stored import StoredAttempt

_TRIES = {
    "error": "failed",
    "timeout": "timed out",
    "interrupted": "was interrupted, because its worker stopped",
    "lost": "was lost, because its worker died",
    "snoozed": "put itself off",
}
_FAILURES = {
    "error": "it raised an error and no retry was left",
    "timeout": "it timed out and no retry was left",
    "crashed": "its worker died, and it is not to be tried again",
    "undecodable": "its stored arguments do not fit the task any more, or its row cannot be read",
}
_SKIPS = {
    "misfire": "nobody was there to run it in time",
    "overlap": "the job before it of the same schedule had not ended",
    "expired": "it was too late to matter",
    "paused": "its schedule was paused",
    "parked": "no code declared its schedule any more",
    "edited": "its schedule was changed before anybody had fired it",
}


def story(facts: Facts) -> Iterator[Sentence]:
    """Yield what happened, in the order of time."""
    yield _beginning(facts)
    for number, attempt in enumerate(facts.attempts, 1):
        yield Sentence(attempt.ended_at, _try(facts, number, attempt))
    job = facts.job
    if job.started_at is not None:
        yield Sentence(job.started_at, _start(facts))
    if job.cancel_requested_at is not None and job.state is State.RUNNING:
        yield Sentence(
            job.cancel_requested_at, "Its cancellation was requested; its worker has been asked to stop it."
        )
    if job.finished_at is not None:
        yield Sentence(job.finished_at, _end(facts))


def _beginning(facts: Facts) -> Sentence:
    job = facts.job
    if job.schedule is not None:
        # A job that was taken back has given its occurrence up, and only remembers it.
        occurrence = job.span_first if job.occurrence is None else job.occurrence
        when = (
            "outside of its times"
            if occurrence is None
            else f"for its occurrence at {moment(facts, occurrence)}"
        )
        origin = f"Made by schedule {job.schedule} {when}"
    elif job.parent is not None:
        origin = f"Enqueued on behalf of job {job.parent}"
    else:
        origin = "Enqueued"
    due = facts.attempts[0].due_at if facts.attempts else job.due_at
    when = f"due {length(due - job.created_at)} later" if due > job.created_at else "due at once"
    return Sentence(
        job.created_at,
        f"{origin}: task {job.task} in queue {job.queue}, priority {job.priority}, {when}.",
    )


def _try(facts: Facts, number: int, attempt: StoredAttempt) -> str:
    where = worker_name(facts, attempt.worker)
    lasted = "" if attempt.started_at is None else f" after {length(attempt.ended_at - attempt.started_at)}"
    how = _TRIES.get(attempt.outcome, f"ended as {attempt.outcome}")
    error = "" if attempt.error is None else f": {first_line(attempt.error)}"
    return f"Try {number} on {where} {how}{lasted}{error}."


def _start(facts: Facts) -> str:
    job = facts.job
    late = f", {length(job.lateness)} after its due time" if job.lateness and job.lateness > 0 else ""
    return f"Try {len(facts.attempts) + 1} started on {worker_name(facts, job.worker)}{late}."


def _end(facts: Facts) -> str:
    job = facts.job
    lasted = ""
    if job.started_at is not None and job.finished_at is not None:
        lasted = f" after {length(job.finished_at - job.started_at)}"
    reason = job.reason or ""
    match job.state:
        case State.SUCCEEDED:
            return f"It succeeded{lasted}."
        case State.FAILED:
            error = "" if job.error is None else f" ({first_line(job.error)})"
            return f"It failed{lasted}: {_FAILURES.get(reason, reason)}{error}."
        case State.CANCELLED:
            return f"It was cancelled{lasted}: {first_line(reason)}."
        case _:
            count = f" This record stands for {job.span_count} occurrences." if job.span_count > 1 else ""
            return f"It was skipped: {_SKIPS.get(reason, reason)}.{count}"
