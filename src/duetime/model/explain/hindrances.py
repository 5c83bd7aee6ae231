"""Why a job has not run, or not ended, yet."""

from __future__ import annotations

from collections.abc import Iterator

from duetime.model.explain.facts import Facts, Sentence
from duetime.model.explain.fleet import able, by_queue, by_workers, names
from duetime.model.explain.words import length, moment, since, worker_name
from duetime.model.states import State
from duetime.model.stored import StoredWorker


def hindrances(facts: Facts) -> Iterator[Sentence]:
    """Yield everything that keeps a live job from going on; nothing for one that has ended."""
    match facts.job.state:
        case State.PENDING:
            found = [*_of_pending(facts)]
            yield from (Sentence(None, text) for text in found or [_nothing(facts)])
        case State.RUNNING:
            yield from (Sentence(None, text) for text in _of_running(facts))
        case _:
            return


def _of_pending(facts: Facts) -> Iterator[str]:
    yield from _by_time(facts)
    yield from by_queue(facts, facts.job.queue)
    yield from _by_limits(facts)
    yield from _by_workers(facts)


def _by_time(facts: Facts) -> Iterator[str]:
    job, now = facts.job, facts.now
    if job.expires_at is not None and job.expires_at <= now:
        yield f"It expired at {moment(facts, job.expires_at)}: the next worker that sees it will skip it."
    elif job.due_at > now:
        when = f"{moment(facts, job.due_at)}, {since(facts, job.due_at)}"
        last = facts.attempts[-1].outcome if facts.attempts else None
        if last in ("error", "timeout", "lost"):
            yield f"It waits for a retry at {when}."
        else:
            yield f"It is not due until {when}."


def _by_limits(facts: Facts) -> Iterator[str]:
    for limit in facts.limits:
        reached = limit.most is not None and limit.running >= limit.most
        if reached and limit.what == f"schedule {facts.job.schedule}":
            yield f"It waits for the run before it of {limit.what}."
        elif reached:
            yield f"A limit is reached: {limit.running} of {limit.most} of {limit.what} are running."
        if limit.again_at is not None and limit.again_at > facts.now:
            again = since(facts, limit.again_at)
            yield f"A rate is used up: {limit.what} may start {limit.rate}; the next may start {again}."


def _by_workers(facts: Facts) -> Iterator[str]:
    job = facts.job
    missing = [*by_workers(facts, queue=job.queue, task=job.task)]
    yield from missing
    if missing or job.due_at > facts.now:
        return
    working = able(facts, queue=job.queue, task=job.task)
    if all(worker.stats.running >= worker.slots for worker in working):
        yield f"Every slot is taken in the workers that could run it: {names(facts, working)}."


def _of_running(facts: Facts) -> Iterator[str]:
    job = facts.job
    name, holder = worker_name(facts, job.worker), facts.worker(job.worker)
    if holder is None or holder.state != "alive":
        state = "is not known any more" if holder is None else f"is {holder.state}"
        yield f"It is claimed by {name}, which {state}: the next sweep of a living worker takes it over."
        return
    if _is_late(holder, facts):
        yield (
            f"It is claimed by {name}, which is late with its pulse: last heard of {since(facts, holder.beat_at)}. "
            f"Unless it speaks up, its jobs are taken over after {moment(facts, holder.lease_until)}."
        )
    if job.started_at is None:
        yield f"It is claimed ahead by {name} and starts at {moment(facts, job.due_at)}."
        return
    done = "" if job.progress is None else f", {job.progress:.0%} done"
    note = f" ({job.progress_note})" if job.progress_note else ""
    yield f"It has been running for {length(max(0, facts.ago(job.started_at)))}{done}{note}."


def _is_late(worker: StoredWorker, facts: Facts) -> bool:
    """Whether a worker has missed a pulse: it speaks three times in each lease."""
    return facts.ago(worker.beat_at) > (worker.lease_until - worker.beat_at) // 2


def _nothing(facts: Facts) -> str:
    job = facts.job
    return f"Nothing is in its way: it is due since {moment(facts, job.due_at)} and a worker can take it at any moment."
