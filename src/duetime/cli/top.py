"""`duetime top`: what goes on, gathered in one look and drawn as lines that fit a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import click
import msgspec

from duetime.cli.command import option, watch_command
from duetime.cli.output import relative_time, say_json, shortened, table_lines
from duetime.model.job import JobId
from duetime.model.schedule.occurrences import searched_until
from duetime.model.schedule.record import StoredSchedule
from duetime.model.text import counted
from duetime.model.time import LONGEST_DURATION, to_datetime
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger
from duetime.scheduler.records import JobRecord, QueueRecord, WorkerRecord
from duetime.scheduler.scheduler import Scheduler

_MOST_RUNNING = 500
_MOST_RUNNING_SHOWN = 30
_MOST_UPCOMING = 10
_BAR_WIDTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingRun:
    """A job that waits for its time, or the next one that a schedule will make."""

    due_at: datetime
    task: str
    queue: str
    schedule: str | None
    job: JobId | None
    """`None`: it is not made yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopView:
    """What there is to see at one moment."""

    now: datetime
    queues: Sequence[QueueRecord]
    workers: Sequence[WorkerRecord]
    """Those that are alive."""
    running: Sequence[JobRecord]
    upcoming: Sequence[ComingRun]


async def read_view(scheduler: Scheduler) -> TopView:
    """Read everything once."""
    claimed = await scheduler.jobs.list(state="running", limit=_MOST_RUNNING)
    running = [job for job in claimed if job.started_at is not None]
    workers = [worker for worker in await scheduler.workers.list() if worker.state == "alive"]
    if claimed.cursor is None:
        # Workers say how many they run only with each heartbeat.
        taken = Counter(job.worker for job in running)
        workers = [replace(worker, running=taken[worker.id]) for worker in workers]
    jobs = await scheduler.jobs.upcoming(limit=_MOST_UPCOMING)
    planned = await scheduler.store.due_schedules(ahead=LONGEST_DURATION, limit=_MOST_UPCOMING)
    coming = [
        ComingRun(due_at=job.due_at, task=job.task, queue=job.queue, schedule=job.schedule, job=job.id)
        for job in jobs
    ]
    coming += filter(None, map(_planned_run, planned.schedules))
    return TopView(
        now=to_datetime(planned.now),
        queues=await scheduler.queues.list(),
        workers=workers,
        running=running,
        upcoming=sorted(coming, key=lambda run: run.due_at)[:_MOST_UPCOMING],
    )


def _planned_run(schedule: StoredSchedule) -> ComingRun | None:
    """Return what a schedule makes next, if that is known."""
    trigger, at = schedule_trigger(schedule), schedule.next_at
    unknown = isinstance(trigger, UnreadableTrigger) or searched_until(trigger, at) is not None
    if at is None or unknown or schedule.paused_at is not None:
        return None
    return ComingRun(
        due_at=to_datetime(trigger.due(at)),
        task=schedule.task,
        queue=schedule.queue,
        schedule=schedule.name,
        job=None,
    )


def view_values(view: TopView) -> object:
    """Return a view as JSON values."""
    return msgspec.to_builtins(view, enc_hook=str)


def view_lines(view: TopView, *, width: int) -> Iterator[str]:
    """Yield the lines of a view, none wider than the terminal."""
    slots = sum(worker.slots for worker in view.workers)
    taken = sum(worker.running for worker in view.workers)
    count = counted(len(view.workers), "worker")
    title = f"duetime  {view.now:%Y-%m-%d %H:%M:%S} UTC   {count}, {taken} of {slots} slots taken"
    yield shortened(title, width)
    served = frozenset(queue for worker in view.workers for queue in worker.queues)
    running = view.running[:_MOST_RUNNING_SHOWN]
    sections: dict[str, list[tuple[str, ...]]] = {
        "QUEUE QUEUED ACTIVE SCHEDULED FAILED STATE": [_queue_row(queue, served) for queue in view.queues],
        "WORKER HOST PID SLOTS DONE HEARD STATE": [_worker_row(one, view.now) for one in view.workers],
        "RUNNING TASK FOR TRY PROGRESS ": [_running_row(job, view.now) for job in running],
        "NEXT TASK QUEUE SCHEDULE JOB": [_coming_row(run, view.now) for run in view.upcoming],
    }
    for head, rows in sections.items():
        yield ""
        yield from table_lines(head.split(" "), rows, most=width)


def _queue_row(queue: QueueRecord, served: frozenset[str]) -> tuple[str, ...]:
    state = "served" if queue.name in served else "no worker"
    if queue.paused:
        state = f"paused: {queue.paused_reason or 'no reason given'}"
    counts = (queue.queued, queue.active, queue.scheduled, queue.failed)
    return (queue.name, *map(str, counts), state)


def _worker_row(worker: WorkerRecord, now: datetime) -> tuple[str, ...]:
    state = "alive" if worker.last_error is None else f"alive, last error: {worker.last_error}"
    if worker.paused:
        state = f"paused: {worker.paused_reason or 'no reason given'}"
    slots = f"{worker.running}/{worker.slots}"
    heard = relative_time(worker.heartbeat_at, now)
    return worker.id, worker.host, str(worker.pid), slots, str(worker.done), heard, shortened(state, 60)


def _running_row(job: JobRecord, now: datetime) -> tuple[str, ...]:
    since = "" if job.started_at is None else relative_time(job.started_at, now).removesuffix(" ago")
    return job.id, job.task, since, str(job.attempt), _progress_bar(job.progress), job.progress_note or ""


def _coming_row(run: ComingRun, now: datetime) -> tuple[str, ...]:
    return relative_time(run.due_at, now), run.task, run.queue, run.schedule or "", run.job or "not made yet"


def _progress_bar(progress: float | None) -> str:
    if progress is None:
        return ""
    full = int(progress * _BAR_WIDTH)
    return f"{'█' * full}{'░' * (_BAR_WIDTH - full)} {progress:4.0%}"


# What a terminal obeys.
_CURSOR_HOME = "\x1b[H"
_END_OF_LINE = "\x1b[K\n"
_CLEAR_BELOW = "\x1b[J"


@click.command(short_help="Watch queues, workers and jobs live.")
@watch_command
@option("--every", "DURATION", "How often to look.", default="1s")
@click.option("--once", is_flag=True, help="Look once and end, as without a terminal.")
async def top(scheduler: Scheduler, *, every: timedelta, once: bool, as_json: bool) -> None:
    """Watch queues, workers, running jobs with their progress, and what falls due next, until Ctrl-C.

    \b
      duetime top
      duetime top --once --json
    """  # noqa: D301
    if as_json:
        say_json(view_values(await read_view(scheduler)))
    elif once or not sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        click.echo("\n".join(view_lines(await read_view(scheduler), width=width)))
    else:
        with _alternate_screen():
            while True:
                view, size = await read_view(scheduler), shutil.get_terminal_size()
                lines = list(view_lines(view, width=size.columns))[: size.lines - 1]
                screen = "".join(line + _END_OF_LINE for line in lines)
                click.echo(_CURSOR_HOME + screen + _CLEAR_BELOW, nl=False)
                await asyncio.sleep(every.total_seconds())


@contextlib.contextmanager
def _alternate_screen() -> Generator[None]:
    """Show the terminal's other screen, without a cursor; the first one comes back as it was."""
    click.echo("\x1b[?1049h\x1b[?25l", nl=False)
    try:
        yield
    finally:
        click.echo("\x1b[?25h\x1b[?1049l", nl=False)
