"""Phrases that explanations share: times, lengths, workers, and whether a worker would run a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

from duetime.model.explain.facts import Situation
from duetime.model.stored import StoredWorker
from duetime.model.time import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    Instant,
    Micros,
    describe_duration,
    to_datetime,
)


def moment(facts: Situation, instant: Instant) -> str:
    """Say a point in time to the second."""
    return f"{to_datetime(instant).astimezone(ZoneInfo(facts.tz)):%Y-%m-%d %H:%M:%S} {facts.tz}"


def length(micros: Micros) -> str:
    """Say a length of time as exactly as people want to know it."""
    for size, step in ((DAY, HOUR), (HOUR, MINUTE), (MINUTE, SECOND), (SECOND, 100 * MILLISECOND)):
        if micros >= size:
            return describe_duration(micros // step * step)
    return f"{micros // MILLISECOND} milliseconds"


def since(facts: Situation, instant: Instant) -> str:
    """Say how long ago something was, or how far ahead it is."""
    ago = facts.ago(instant)
    return f"in {length(-ago)}" if ago < 0 else f"{length(ago)} ago"


def worker_name(facts: Situation, worker_id: str | None) -> str:
    """Name a worker so that an operator finds it."""
    known = facts.worker(worker_id)
    if known is None:
        return f"worker {worker_id or 'unknown'}"
    return f"worker {known.id} (pid {known.pid} on {known.host})"


def first_line(text: str) -> str:
    """Return the beginning of a text that others wrote, to go on after it."""
    return text.partition("\n")[0].rstrip(".")


def by_queue(facts: Situation, queue: str) -> Iterator[str]:
    """Say that a queue is paused, if it is."""
    if facts.queue_paused_at is not None:
        why = f": {facts.queue_paused_reason}" if facts.queue_paused_reason else ""
        yield f"Queue {queue} is paused since {moment(facts, facts.queue_paused_at)}{why}."


def by_workers(facts: Situation, *, queue: str, task: str) -> Iterator[str]:
    """Say the first thing that is missing: a worker, one for the queue, one for the task, one that goes on."""
    fleet = facts.fleet
    if not fleet.queues:
        why = "only fires schedules" if len(fleet.alive) == 1 else "only fire schedules"
        what = f"runs jobs: {worker_names(facts, fleet.alive)} {why}" if fleet.alive else "is alive"
        yield f"No worker {what}; start one with: duetime worker MODULE:SCHEDULER"
        return
    serving = fleet.serving(queue)
    if not serving:
        served = ", ".join(sorted(fleet.queues))
        yield f"No worker serves queue {queue}; those that are alive serve {served}."
        return
    knowing = [worker for worker in serving if task in worker.tasks]
    if not knowing:
        yield f"No worker knows task {task}; queue {queue} is served by {worker_names(facts, serving)}."
        return
    if not able_workers(facts, queue=queue, task=task):
        yield f"Every worker that could run it is paused: {worker_names(facts, knowing)}."


def able_workers(facts: Situation, *, queue: str, task: str) -> list[StoredWorker]:
    """Return the workers that take jobs of a task from a queue now."""
    return [
        worker
        for worker in facts.fleet.serving(queue)
        if task in worker.tasks and worker.stats.paused_at is None
    ]


def worker_names(facts: Situation, workers: Sequence[StoredWorker]) -> str:
    """Name workers so that an operator finds them."""
    return ", ".join(worker_name(facts, worker.id) for worker in workers)
