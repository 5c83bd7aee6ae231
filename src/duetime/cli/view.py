"""What `duetime top` shows: gathered in one look, drawn as lines that fit a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from duetime.cli.text import relative, shortened, table
from duetime.model.instants import to_datetime
from duetime.scheduler.records import JobRecord, QueueRecord, WorkerRecord
from duetime.scheduler.scheduler import Scheduler

_MOST_RUNNING = 30
_MOST_UPCOMING = 10
_BAR = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What there is to see at one moment."""

    now: datetime
    queues: Sequence[QueueRecord]
    workers: Sequence[WorkerRecord]
    """Those that are alive."""
    running: Sequence[JobRecord]
    upcoming: Sequence[JobRecord]


async def look(scheduler: Scheduler) -> View:
    """Read everything once."""
    claimed = await scheduler.jobs.list(state="running", limit=_MOST_RUNNING)
    return View(
        now=to_datetime(await scheduler.store.now()),
        queues=await scheduler.queues.list(),
        workers=[worker for worker in await scheduler.workers.list() if worker.state == "alive"],
        running=[job for job in claimed if job.started_at is not None],
        upcoming=await scheduler.jobs.upcoming(limit=_MOST_UPCOMING),
    )


def as_values(view: View) -> object:
    """Return a view as JSON values."""
    return msgspec.to_builtins(view, enc_hook=str)


def draw(view: View, *, width: int) -> Iterator[str]:
    """Yield the lines of a view, none wider than the terminal."""
    slots = sum(worker.slots for worker in view.workers)
    # Workers say how many they run only with each heartbeat.
    taken = sum(queue.active for queue in view.queues)
    count = "1 worker" if len(view.workers) == 1 else f"{len(view.workers)} workers"
    yield _cut(f"duetime  {view.now:%Y-%m-%d %H:%M:%S} UTC   {count}, {taken} of {slots} slots taken", width)
    sections = (
        (("QUEUE", "QUEUED", "ACTIVE", "SCHEDULED", "FAILED", ""), map(_queue, view.queues)),
        (
            ("WORKER", "HOST", "PID", "SLOTS", "DONE", "HEARD", ""),
            (_worker(w, view.now) for w in view.workers),
        ),
        (
            ("RUNNING", "TASK", "FOR", "TRY", "PROGRESS", ""),
            (_running(job, view.now) for job in view.running),
        ),
        (("NEXT", "TASK", "QUEUE", "DUE"), (_upcoming(job, view.now) for job in view.upcoming)),
    )
    for head, rows in sections:
        yield ""
        for line in table(head, rows):
            yield _cut(line, width)


def _queue(queue: QueueRecord) -> tuple[str, ...]:
    note = "" if not queue.paused else f"paused: {queue.paused_reason or 'no reason given'}"
    counts = (queue.queued, queue.active, queue.scheduled, queue.failed)
    return (queue.name, *map(str, counts), note)


def _worker(worker: WorkerRecord, now: datetime) -> tuple[str, ...]:
    note = (
        f"paused: {worker.paused_reason or 'no reason given'}" if worker.paused else worker.last_error or ""
    )
    slots = f"{worker.running}/{worker.slots}"
    heard = relative(worker.heartbeat_at, now)
    return worker.id, worker.host, str(worker.pid), slots, str(worker.done), heard, shortened(note, 60)


def _running(job: JobRecord, now: datetime) -> tuple[str, ...]:
    since = "" if job.started_at is None else relative(job.started_at, now).removesuffix(" ago")
    return job.id, job.task, since, str(job.attempt), _bar(job.progress), job.progress_note or ""


def _upcoming(job: JobRecord, now: datetime) -> tuple[str, ...]:
    return job.id, job.task, job.queue, relative(job.due_at, now)


def _bar(progress: float | None) -> str:
    if progress is None:
        return ""
    full = int(progress * _BAR)
    return f"{'█' * full}{'░' * (_BAR - full)} {progress:4.0%}"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"
