"""Why a job has not run, or not ended, yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from duetime.model.explain.facts import Facts, Sentence
from duetime.model.explain.words import length, moment, since, worker_name
from duetime.model.states import State
from duetime.model.worker import StoredWorker


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
    yield from _by_queue(facts)
    yield from _by_limits(facts)
    yield from _by_workers(facts)


def _by_time(facts: Facts) -> Iterator[str]:
    job, now = facts.job, facts.now
    if job.expires_at is not None and job.expires_at <= now:
        yield f"It expired at {moment(job.expires_at)}: the next worker that sees it will skip it."
    elif job.due_at > now:
        when = f"{moment(job.due_at)}, {since(facts, job.due_at)}"
        last = facts.attempts[-1].outcome if facts.attempts else None
        if last in ("error", "timeout", "lost"):
            yield f"It waits for a retry at {when}."
        else:
            yield f"It is not due until {when}."


def _by_queue(facts: Facts) -> Iterator[str]:
    if facts.queue_paused_at is not None:
        why = f": {facts.queue_paused_reason}" if facts.queue_paused_reason else ""
        yield f"Queue {facts.job.queue} is paused since {moment(facts.queue_paused_at)}{why}."


def _by_limits(facts: Facts) -> Iterator[str]:
    for limit in facts.limits:
        if limit.most is not None and limit.running >= limit.most:
            yield f"A limit is reached: {limit.running} of {limit.most} of {limit.what} are running."
        if limit.again_at is not None and limit.again_at > facts.now:
            again = since(facts, limit.again_at)
            yield f"A rate is used up: {limit.what} may start {limit.rate}; the next may start {again}."


def _by_workers(facts: Facts) -> Iterator[str]:
    """Yield the first thing that is missing: a worker, one for the queue, one for the task, a free one."""
    job = facts.job
    alive = [worker for worker in facts.workers if worker.state == "alive"]
    if not alive:
        yield "No worker is alive; start one with: duetime worker MODULE:SCHEDULER"
        return
    serving = [worker for worker in alive if job.queue in worker.queues]
    if not serving:
        served = ", ".join(sorted({queue for worker in alive for queue in worker.queues}))
        yield f"No worker serves queue {job.queue}; those that are alive serve {served}."
        return
    knowing = [worker for worker in serving if job.task in worker.tasks]
    if not knowing:
        yield f"No worker knows task {job.task}; queue {job.queue} is served by {_names(facts, serving)}."
        return
    working = [worker for worker in knowing if worker.stats.paused_at is None]
    if not working:
        yield f"Every worker that could run it is paused: {_names(facts, knowing)}."
        return
    if job.due_at <= facts.now and all(worker.stats.running >= worker.slots for worker in working):
        yield f"Every slot is taken in the workers that could run it: {_names(facts, working)}."


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
            f"Unless it speaks up, its jobs are taken over after {moment(holder.lease_until)}."
        )
    if job.started_at is None:
        yield f"It is claimed ahead by {name} and starts at {moment(job.due_at)}."
        return
    done = "" if job.progress is None else f", {job.progress:.0%} done"
    note = f" ({job.progress_note})" if job.progress_note else ""
    yield f"It has been running for {length(max(0, facts.ago(job.started_at)))}{done}{note}."


def _is_late(worker: StoredWorker, facts: Facts) -> bool:
    """Whether a worker has missed a pulse: it speaks three times in each lease."""
    return facts.ago(worker.beat_at) > (worker.lease_until - worker.beat_at) // 2


def _nothing(facts: Facts) -> str:
    job = facts.job
    return (
        f"Nothing is in its way: it is due since {moment(job.due_at)} and a worker can take it at any moment."
    )


def _names(facts: Facts, workers: Sequence[StoredWorker]) -> str:
    return ", ".join(worker_name(facts, worker.id) for worker in workers)
