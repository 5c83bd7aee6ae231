"""Tells in sentences what happened to a job, and why it has not run or not ended."""

from __future__ import annotations

from collections.abc import Iterator

from duetime.model.explain.facts import JobFacts, Sentence, first_line, length, sentences
from duetime.model.locks import is_lock_held
from duetime.model.states import State
from duetime.model.stored.jobs import StoredAttempt

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
    "misfire": "no one was there to run it in time",
    "overlap": "the job before it of the same schedule had not ended",
    "expired": "it was too late to matter",
    "paused": "its schedule was paused",
    "parked": "no code declared its schedule any more",
    "edited": "its schedule was changed before anyone had fired it",
}


def job_story(facts: JobFacts) -> Iterator[Sentence]:
    """Yield what happened, in the order of time."""
    yield _beginning(facts)
    for number, attempt in enumerate(facts.attempts, 1):
        yield Sentence(attempt.ended_at, _try(facts, number, attempt))
    job = facts.job
    if job.started_at is not None:
        late = f", {length(job.lateness)} after its due time" if job.lateness and job.lateness > 0 else ""
        started = f"Try {len(facts.attempts) + 1} started on {facts.worker_name(job.worker)}{late}."
        yield Sentence(job.started_at, started)
    if job.cancel_requested_at is not None and job.state is State.RUNNING:
        requested = "Its cancellation was requested; its worker has been asked to stop it."
        yield Sentence(job.cancel_requested_at, requested)
    if job.finished_at is not None:
        yield Sentence(job.finished_at, _end(facts))


def _beginning(facts: JobFacts) -> Sentence:
    job = facts.job
    if job.schedule is not None:
        # A job that was taken back has given its occurrence up, and only remembers it.
        occurrence = job.span_first if job.occurrence is None else job.occurrence
        origin = f"Made by schedule {job.schedule} outside of its times"
        if occurrence is not None:
            origin = f"Made by schedule {job.schedule} for its occurrence at {facts.moment(occurrence)}"
    elif job.parent is not None:
        origin = f"Enqueued on behalf of job {job.parent}"
    else:
        origin = "Enqueued"
    due = facts.attempts[0].due_at if facts.attempts else job.due_at
    when = f"due {length(due - job.created_at)} later" if due > job.created_at else "due at once"
    what = f"task {job.task} in queue {job.queue}, priority {job.priority}, {when}"
    return Sentence(job.created_at, f"{origin}: {what}.")


def _try(facts: JobFacts, number: int, attempt: StoredAttempt) -> str:
    where = facts.worker_name(attempt.worker)
    lasted = "" if attempt.started_at is None else f" after {length(attempt.ended_at - attempt.started_at)}"
    how = _TRIES.get(attempt.outcome, f"ended as {attempt.outcome}")
    error = "" if attempt.error is None else f": {first_line(attempt.error)}"
    return f"Try {number} on {where} {how}{lasted}{error}."


def _end(facts: JobFacts) -> str:
    job = facts.job
    lasted = ""
    if job.started_at is not None and job.finished_at is not None:
        lasted = f" after {length(job.finished_at - job.started_at)}"
    reason = job.reason or ""
    match job.state:
        case State.SUCCEEDED:
            lost = "" if job.lost_result is None else f", but {first_line(job.lost_result)}"
            return f"It succeeded{lasted}{lost}."
        case State.FAILED:
            error = "" if job.error is None else f" ({first_line(job.error)})"
            return f"It failed{lasted}: {_FAILURES.get(reason, reason)}{error}."
        case State.CANCELLED:
            return f"It was cancelled{lasted}: {first_line(reason)}."
        case _:
            count = f" This record stands for {job.span_count} occurrences." if job.span_count > 1 else ""
            return f"It was skipped: {_SKIPS.get(reason, reason)}.{count}"


def hindrances(facts: JobFacts) -> Iterator[str]:
    """Yield everything that keeps a live job from going on; nothing for one that has ended."""
    job = facts.job
    if job.state is State.RUNNING:
        yield from _of_running(facts)
    elif job.state is State.PENDING:
        told = [*_by_time(facts), *facts.by_queue(job.queue), *_by_limits(facts), *_by_workers(facts)]
        due = f"it has been due since {facts.moment(job.due_at)} and a worker can take it at any moment"
        yield from told or [f"Nothing is in its way: {due}."]


def _by_time(facts: JobFacts) -> Iterator[str]:
    job, now = facts.job, facts.now
    if job.expires_at is not None and job.expires_at <= now:
        yield f"It expired at {facts.moment(job.expires_at)}: the next worker that sees it will skip it."
    elif job.due_at > now:
        when = f"{facts.moment(job.due_at)}, {facts.since(job.due_at)}"
        last = facts.attempts[-1].outcome if facts.attempts else None
        if is_lock_held(job.reason):
            yield f"Its {job.reason}: it waits until that is released, or until {when}."
        elif last in ("error", "timeout", "lost"):
            yield f"It waits for a retry at {when}."
        else:
            yield f"It is not due until {when}."


def _by_limits(facts: JobFacts) -> Iterator[str]:
    for limit in facts.limits:
        reached = limit.most is not None and limit.running >= limit.most
        if reached and limit.what == f"schedule {facts.job.schedule}":
            yield f"It waits for the run before it of {limit.what}."
        elif reached:
            yield f"A limit is reached: {limit.running} of {limit.most} of {limit.what} are running."
        if limit.again_at is not None and limit.again_at > facts.now:
            again = facts.since(limit.again_at)
            yield f"A rate is used up: {limit.what} may start {limit.rate}; the next may start {again}."


def _by_workers(facts: JobFacts) -> Iterator[str]:
    job = facts.job
    missing = [*facts.by_workers(queue=job.queue, task=job.task)]
    yield from missing
    if missing or job.due_at > facts.now:
        return
    working = facts.able_workers(queue=job.queue, task=job.task)
    if all(worker.stats.running >= worker.slots for worker in working):
        yield f"Every slot is taken in the workers that could run it: {facts.worker_names(working)}."


def _of_running(facts: JobFacts) -> Iterator[str]:
    job = facts.job
    name, holder = facts.worker_name(job.worker), facts.worker(job.worker)
    if holder is None or holder.state != "alive":
        state = "is not known any more" if holder is None else f"is {holder.state}"
        yield f"It is claimed by {name}, which {state}: the next sweep of a living worker takes it over."
        return
    if (late := facts.late_pulse(holder)) is not None:
        yield f"It is claimed by {name}, which {late}"
    if job.started_at is None:
        yield f"It is claimed ahead by {name} and starts at {facts.moment(job.due_at)}."
    else:
        done = "" if job.progress is None else f", {job.progress:.0%} done"
        note = f" ({job.progress_note})" if job.progress_note else ""
        yield f"It has been running for {length(max(0, facts.now - job.started_at))}{done}{note}."


def job_explanation(facts: JobFacts) -> tuple[Sentence, ...]:
    """Return the story of a job in the order of time, then what it waits for."""
    return sentences((*job_story(facts), *hindrances(facts)))
