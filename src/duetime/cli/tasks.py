"""`duetime tasks`: what workers can run, and jobs of it without the code."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import click
import msgspec

from duetime.cli.command import client_command, option, store_time
from duetime.cli.output import Answer, record_lines, relative_time, shortened, table_or
from duetime.errors import InvalidArguments
from duetime.model.text import shown
from duetime.scheduler.announced import TaskRecord
from duetime.scheduler.records import json_or_text
from duetime.scheduler.scheduler import Scheduler

_DOC_WIDTH = 60


@click.group(short_help="Show what workers can run, and enqueue it by name.")
def tasks() -> None:
    """Show the tasks that workers have announced, and enqueue jobs of them without the code.

    \b
      duetime tasks list
      duetime tasks enqueue mail.send user_id=1 message=hi
    """  # noqa: D301


@tasks.command("list")
@client_command
async def list_tasks(scheduler: Scheduler) -> Answer:
    """List tasks by name, with how many living workers know each."""
    found, now = await scheduler.announced.list(), await store_time(scheduler)
    head = ("TASK", "QUEUE", "WORKERS", "ANNOUNCED", "ARGUMENTS", "")
    return Answer(
        values=[_values(task) for task in found],
        lines=table_or("no worker has announced a task", head, (_row(task, now) for task in found)),
    )


@tasks.command(short_help="Show all that is known about a task.")
@client_command
@click.argument("name", metavar="TASK")
async def show(scheduler: Scheduler, *, name: str) -> Answer:
    """Show all that is known about a task, with the JSON Schema of its arguments."""
    values = _values(await scheduler.announced.get(name))
    return Answer(values=values, lines=record_lines(values))


@tasks.command()
@client_command
@click.argument("name", metavar="TASK")
@click.argument("arguments", nargs=-1)
@option("--delay", "DURATION", "Run it this long from now: 10s, 1h30m.")
@option("--at", "MOMENT", "Run it at this time: 2030-01-31T09:00:00+01:00.")
@option("--queue", "NAME", "In place of the task's own.")
@option("--priority", "N", "From 0 (first) to 9, instead of the task's own.")
async def enqueue(scheduler: Scheduler, *, name: str, arguments: tuple[str, ...], **given: Any) -> Answer:
    """Store a job of an announced task, and print its id.

    ARGUMENTS are name=value pairs, or one JSON object.
    """
    options: Any = {key: value for key, value in given.items() if value is not None}
    task = await scheduler.announced.get(name)
    job = await (await scheduler.enqueue_by_name(name, _arguments(task, arguments), **options)).record()
    values = {"id": job.id, "task": job.task, "queue": job.queue, "due_at": job.due_at.isoformat()}
    return Answer(values=values, lines=[job.id])


def _arguments(task: TaskRecord, given: tuple[str, ...]) -> dict[str, object]:
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        value = json_or_text(given[0])
        if not isinstance(value, dict):
            raise InvalidArguments("the arguments are not a JSON object")
        return cast("dict[str, object]", value)
    pairs = [text.partition("=") for text in given]
    kinds = task.schema.get("properties", {})
    if bad := [name for name, separator, _ in pairs if not separator]:
        example = f"{next(iter(kinds), 'name')}={bad[0]}"
        raise InvalidArguments(
            f"{bad[0]!r} is given without a name; write {shown(example)}, or a JSON object"
        )
    texts = {name for name, kind in kinds.items() if kind.get("type") == "string"}
    return {name: value if name in texts else json_or_text(value) for name, _, value in pairs}


def _values(task: TaskRecord) -> dict[str, object]:
    values: dict[str, object] = msgspec.to_builtins(task)
    values["timeout"] = None if task.timeout is None else task.timeout.total_seconds()
    return values


def _row(task: TaskRecord, now: datetime) -> tuple[str, ...]:
    takes = ", ".join(task.schema.get("properties", {}))
    doc = shortened((task.doc or "").partition("\n")[0], _DOC_WIDTH)
    return task.name, task.queue, str(task.workers), relative_time(task.announced_at, now), takes, doc
