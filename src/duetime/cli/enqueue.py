"""`duetime enqueue`."""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import click
import msgspec

from duetime.cli import options
from duetime.cli.failures import ExitCode, Failure
from duetime.cli.loading import closest, load_scheduler
from duetime.cli.text import say, say_json
from duetime.errors import UnknownTask
from duetime.model.task import JobOptionValues, job_options
from duetime.runtime.handler import Handler
from duetime.scheduler import JobRecord, Scheduler
from duetime.scheduler.task import Request


class Arguments(NamedTuple):
    """The arguments of a call."""

    args: Sequence[object]
    kwargs: Mapping[str, object]


@click.command()
@click.argument("target", metavar="MODULE:OBJECT")
@click.argument("task")
@click.argument("arguments", nargs=-1)
@click.option(
    "--delay", type=options.duration, metavar="DURATION", help="Run it this long from now: 10s, 1h30m."
)
@click.option("--at", type=options.moment, metavar="MOMENT", help="Run it then: 2030-01-31T09:00:00+01:00.")
@click.option("--queue", help="Put it into this queue instead of the task's own.")
@click.option("--priority", type=int, help="From 0 (first) to 9, instead of the task's own.")
@options.as_json
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
    handler = _handler(scheduler, task)
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
    job = asyncio.run(_store(scheduler, request, _read(handler, arguments)))
    if as_json:
        say_json({"id": job.id, "task": job.task, "queue": job.queue, "due_at": job.due_at.isoformat()})
    else:
        say(job.id)


async def _store(scheduler: Scheduler, request: Request[..., Any], call: Arguments) -> JobRecord:
    async with scheduler:
        handle = await request.enqueue(*call.args, **call.kwargs)
        return await handle.record()


def _handler(scheduler: Scheduler, task: str) -> Handler:
    if task in scheduler.tasks:
        return scheduler.tasks[task]
    known = closest(task, scheduler.tasks)
    offer = (
        f"did you mean {' or '.join(known)}?"
        if known
        else f"there are: {', '.join(sorted(scheduler.tasks)) or 'none'}"
    )
    raise UnknownTask(f"there is no task {task!r} here; {offer}")


def _read(handler: Handler, given: Sequence[str]) -> Arguments:
    if len(given) == 1 and given[0].lstrip().startswith(("{", "[")):
        return _read_json(given[0])
    hints = typing.get_type_hints(handler.function, include_extras=True)
    pairs: dict[str, object] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or name in pairs:
            problem = "twice" if separator else "without a value"
            message = (
                f"{text!r} gives {name!r} {problem}; write name=value pairs, or one JSON object or array"
            )
            raise Failure(message, ExitCode.USAGE)
        pairs[name] = _read_value(value, hints.get(name, Any))
    return Arguments((), pairs)


def _read_json(text: str) -> Arguments:
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Failure(f"the arguments are not JSON: {error}", ExitCode.USAGE) from None
    return Arguments((), value) if isinstance(value, dict) else Arguments(value, {})


def _read_value(text: str, kind: Any) -> object:
    """Read a text as a parameter's type; what does not fit is left for the task's own check to name."""
    try:
        if kind is not Any:
            return msgspec.convert(text, kind, strict=False)
    except (msgspec.ValidationError, TypeError):
        pass
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
