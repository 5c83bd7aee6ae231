"""Tells in sentences what a worker was told and has come to, and why it takes no jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from duetime.model.explain.facts import Sentence, WorkerFacts, first_line, length, sentences
from duetime.model.text import counted
from duetime.model.time import SECOND, Micros
from duetime.model.worker import Command

_LONG_LAG: Final[Micros] = SECOND
"""From when on a blocked event loop is worth a sentence."""


def worker_story(facts: WorkerFacts) -> Iterator[Sentence]:
    """Yield what happened, in the order of time."""
    worker = facts.subject
    work = "runs no jobs"
    if worker.queues:
        places, tasks = counted(worker.slots, "slot"), counted(len(worker.tasks), "task")
        work = f"{places}, {tasks}, queues {', '.join(worker.queues)}"
    fires = ", fires schedules" if worker.fires else ""
    who = f"Worker {worker.id} (pid {worker.pid} on {worker.host})"
    yield Sentence(worker.started_at, f"{who} started with Duetime {worker.version}: {work}{fires}.")
    for command in reversed(facts.commands):
        yield Sentence(command.created_at, _command(command))
    if worker.state == "stopped":
        yield Sentence(worker.lease_until, f"It stopped, having run {_work(facts)}.")
    elif worker.state == "dead":
        yield Sentence(worker.beat_at, f"It was last heard of, having run {_work(facts)}.")


def _command(command: Command) -> str:
    what = command.kind.replace("_", " ") + (f" {command.job}" if command.job else "")
    why = f" ({first_line(command.reason)})" if command.reason else ""
    answer = "it has not answered yet" if command.outcome is None else first_line(command.outcome)
    return f"It was told to {what}{why}: {answer}."


def _work(facts: WorkerFacts) -> str:
    stats = facts.subject.stats
    return f"{counted(stats.done, 'job')}, of which {stats.failed:,} failed"


def worker_hindrances(facts: WorkerFacts) -> Iterator[str]:
    """Yield how a worker stands, and everything that keeps it from taking jobs."""
    worker, stats = facts.subject, facts.subject.stats
    if worker.state == "dead":
        yield "It counts as dead: its lease ran out, or its process is gone. Others take over its jobs."
    if worker.state != "alive":
        return
    if (late := facts.late_pulse(worker)) is not None:
        yield f"It {late}"
    if worker.queues:
        yield f"It runs {stats.running:,} of at most {counted(worker.slots, 'job')}, and has run {_work(facts)}."
    if stats.paused_at is not None:
        why = f": {stats.paused_reason}" if stats.paused_reason else ""
        yield f"It is paused since {facts.moment(stats.paused_at)}{why}. `duetime workers resume` lets it go on."
    for queue in facts.queues:
        if queue.name in worker.queues and queue.paused_at is not None:
            why = f": {queue.paused_reason}" if queue.paused_reason else ""
            yield f"Its queue {queue.name} is paused since {facts.moment(queue.paused_at)}{why}."
    if stats.loop_lag >= _LONG_LAG:
        where = f"`duetime workers stacks {worker.id}` shows where"
        yield f"Its event loop was blocked for {length(stats.loop_lag)}; {where}."
    if stats.last_error is not None:
        yield f"What last went wrong in it: {first_line(stats.last_error)}."


def worker_explanation(facts: WorkerFacts) -> tuple[Sentence, ...]:
    """Return the story of a worker in the order of time, then how it stands."""
    return sentences((*worker_story(facts), *worker_hindrances(facts)))
