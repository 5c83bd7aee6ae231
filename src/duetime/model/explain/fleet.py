"""What queues and workers have to do with it: whether anybody would run a task in a queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from duetime.model.explain.facts import Situation
from duetime.model.explain.words import moment, worker_name
from duetime.model.stored import StoredWorker


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
        what = f"runs jobs: {names(facts, fleet.alive)} {why}" if fleet.alive else "is alive"
        yield f"No worker {what}; start one with: duetime worker MODULE:SCHEDULER"
        return
    serving = fleet.serving(queue)
    if not serving:
        served = ", ".join(sorted(fleet.queues))
        yield f"No worker serves queue {queue}; those that are alive serve {served}."
        return
    knowing = [worker for worker in serving if task in worker.tasks]
    if not knowing:
        yield f"No worker knows task {task}; queue {queue} is served by {names(facts, serving)}."
        return
    if not able(facts, queue=queue, task=task):
        yield f"Every worker that could run it is paused: {names(facts, knowing)}."


def able(facts: Situation, *, queue: str, task: str) -> list[StoredWorker]:
    """Return the workers that take jobs of a task from a queue now."""
    return [
        worker
        for worker in facts.fleet.serving(queue)
        if task in worker.tasks and worker.stats.paused_at is None
    ]


def names(facts: Situation, workers: Sequence[StoredWorker]) -> str:
    """Name workers so that an operator finds them."""
    return ", ".join(worker_name(facts, worker.id) for worker in workers)
