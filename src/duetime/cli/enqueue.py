"""`duetime enqueue`."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import click

from duetime.cli.loading import known_task, load_scheduler
from duetime.cli.options import json_option, read_duration, read_moment
from duetime.cli.output import say, say_json
from duetime.model.task import JobOptionValues, job_options
from duetime.scheduler.records import JobRecord
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.task import CallArguments, Request, read_arguments


@click.command()
@click.argument("target", metavar="MODULE:OBJECT")
@click.argument("task")
@click.argument("arguments", nargs=-1)
@click.option(
    "--delay", type=read_duration, metavar="DURATION", help="Run it this long from now: 10s, 1h30m."
)
@click.option("--at", type=read_moment, metavar="MOMENT", help="Run it then: 2030-01-31T09:00:00+01:00.")
@click.option("--queue", help="Put it into this queue instead of the task's own.")
@click.option("--priority", type=int, help="From 0 (first) to 9, instead of the task's own.")
@json_option
def enqueue(
    *,
    target: str,
    task: str,
    arguments: tuple[str, ...],
    delay: timedelta | None,
    at: datetime | None,
    queue: str | None,
    priority: int | None,
    as_json: bool,
) -> None:
    """Store a job that calls TASK, and print its id.

    ARGUMENTS are name=value pairs, read as the type of the parameter, or one JSON object or array.

    \b
      duetime enqueue jobs:scheduler jobs.send_email user_id=1 message=hi
      duetime enqueue jobs:scheduler jobs.send_email '{"user_id": 1, "message": "hi"}' --delay 10s
      duetime enqueue jobs:scheduler jobs.send_email '[1, "hi"]' --at 2030-01-31T09:00:00Z --priority 0
    """  # noqa: D301
    scheduler = load_scheduler(target)
    handler = known_task(scheduler, task)
    wanted: JobOptionValues = {}
    if delay is not None:
        wanted["delay"] = delay
    if at is not None:
        wanted["at"] = at
    if queue is not None:
        wanted["queue"] = queue
    if priority is not None:
        wanted["priority"] = priority
    request: Request[..., Any] = Request(handler, scheduler, job_options(wanted))
    job = asyncio.run(_store(scheduler, request, read_arguments(handler, arguments)))
    if as_json:
        say_json({"id": job.id, "task": job.task, "queue": job.queue, "due_at": job.due_at.isoformat()})
    else:
        say(job.id)


async def _store(scheduler: Scheduler, request: Request[..., Any], call: CallArguments) -> JobRecord:
    async with scheduler:
        handle = await request.enqueue(*call.args, **call.kwargs)
        return await handle.record()
