"""`duetime workers`: list and show workers, and tell them what to do."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import click
import msgspec

from duetime.cli.command import client_command, read_duration, read_ids, store_time
from duetime.cli.output import (
    Answer,
    CommandFailure,
    ExitCode,
    exit_code_of,
    record_lines,
    relative_time,
    shortened,
    table_or,
)
from duetime.errors import WorkerGone, WorkerNotFound
from duetime.model.worker import WorkerId
from duetime.scheduler.lookup import worker_not_found
from duetime.scheduler.records import CommandRecord, WorkerRecord
from duetime.scheduler.scheduler import Scheduler

_OUTCOME_WIDTH = 60
_DEFAULT_WAIT = "10s"


class CommandReply(NamedTuple):
    """What came of a command to one worker."""

    worker: WorkerId
    answer: str | None
    error: str | None = None
    code: ExitCode = ExitCode.OK


SendCommand: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Sends a command to the worker of an id, and returns the worker's answer."""


@click.group()
def workers() -> None:
    """List and show workers, and tell them what to do.

    A worker is named by its id or the beginning of it; `-` reads ids from standard input.

    \b
      duetime workers list
      duetime workers pause 7f3a --reason reindexing
      duetime workers stop --all
      duetime workers stacks 7f3a
    """  # noqa: D301


def worker_command(
    function: Callable[..., SendCommand],
) -> Callable[..., None]:
    """Make a command that sends what the function returns to the workers that are named.

    They are told all at once, so that a slow one does not hold up the others.
    """

    @functools.wraps(function)
    def run(
        scheduler: Scheduler, *, worker_ids: tuple[str, ...], everyone: bool, **given: Any
    ) -> Coroutine[Any, Any, Answer]:
        if bool(worker_ids) == everyone:
            raise CommandFailure("name the workers or say --all", ExitCode.USAGE)
        send = function(scheduler, **given)
        return _replies_of_workers(scheduler, send, None if everyone else worker_ids)

    ids = click.argument("worker_ids", metavar="ID...", nargs=-1, callback=read_ids)
    everyone = click.option("--all", "everyone", is_flag=True, help="All workers that are alive.")
    wait = click.option(
        "--wait",
        type=read_duration,
        default=_DEFAULT_WAIT,
        show_default=True,
        metavar="DURATION",
        help="How long to wait for the answers.",
    )
    return client_command(ids(everyone(wait(run))))


@workers.command("list")
@client_command
@click.option("--all", "everyone", is_flag=True, help="Also workers that have stopped or died.")
async def list_workers(scheduler: Scheduler, *, everyone: bool) -> Answer:
    """List workers, newest first."""
    known, now = await scheduler.workers.list(), await store_time(scheduler)
    found = [worker for worker in known if everyone or worker.state == "alive"]
    head = ("ID", "STATE", "HOST", "PID", "QUEUES", "RUNNING", "DONE", "FAILED", "STARTED", "HEARD OF")
    return Answer(
        values=[_worker_values(worker) for worker in found],
        lines=table_or("no workers", head, (_worker_row(worker, now) for worker in found)),
    )


@workers.command()
@client_command
@click.argument("worker_id", metavar="ID")
async def show(scheduler: Scheduler, *, worker_id: str) -> Answer:
    """Show all that is known about a worker, and what it was told last."""
    (worker,) = _find_by_id(await scheduler.workers.list(), [worker_id])
    commands, values = await scheduler.workers.commands(worker.id), _worker_values(worker)
    return Answer(
        values=values | {"commands": [msgspec.to_builtins(command) for command in commands]},
        lines=(*record_lines(values), *map(_command_line, commands)),
    )


@workers.command()
@worker_command
@click.option("--reason", help="Kept with the worker, for others to read.")
def pause(scheduler: Scheduler, *, reason: str | None, wait: timedelta) -> SendCommand:
    """Have workers start nothing more; what runs goes on."""
    return lambda worker: scheduler.workers.pause(worker, reason=reason, wait=wait)


@workers.command()
@worker_command
def resume(scheduler: Scheduler, *, wait: timedelta) -> SendCommand:
    """Have paused workers start jobs again."""
    return lambda worker: scheduler.workers.resume(worker, wait=wait)


@workers.command()
@worker_command
@click.option("--now", is_flag=True, help="Without the grace time: cancel what runs.")
@click.option("--reason", help="Kept with the command.")
def stop(scheduler: Scheduler, *, now: bool, reason: str | None, wait: timedelta) -> SendCommand:
    """Have workers stop as after a signal: running jobs have the grace time to end.

    Waits until the workers have begun to stop, not until they have ended. One that is embedded in a program stops
    working, and the program goes on.
    """
    return lambda worker: scheduler.workers.stop(worker, now=now, reason=reason, wait=wait)


@workers.command()
@worker_command
def stacks(scheduler: Scheduler, *, wait: timedelta) -> SendCommand:
    """Show where all threads and tasks of workers stand, also when an event loop is blocked."""
    return lambda worker: scheduler.workers.stacks(worker, wait=wait)


async def _replies_of_workers(scheduler: Scheduler, send: SendCommand, ids: Sequence[str] | None) -> Answer:
    """Send to these workers, or to all that are alive."""

    async def ask(worker: WorkerRecord) -> CommandReply:
        try:
            return CommandReply(worker.id, await send(worker.id))
        except (WorkerGone, WorkerNotFound, TimeoutError) as error:
            return CommandReply(worker.id, None, str(error), exit_code_of(error))

    known = await scheduler.workers.list()
    alive = [worker for worker in known if worker.state == "alive"]
    replies = await asyncio.gather(*map(ask, alive if ids is None else _find_by_id(known, ids)))
    return Answer(
        values={reply.worker: {"answer": reply.answer, "error": reply.error} for reply in replies},
        lines=[line for reply in replies for line in _reply_lines(reply)] or ["no workers"],
        code=max((reply.code for reply in replies), default=ExitCode.OK),
    )


def _reply_lines(reply: CommandReply) -> Iterator[str]:
    first, *more = (reply.answer or reply.error or "told").splitlines()
    yield f"{reply.worker}  {first}"
    yield from (f"  {line.expandtabs()}" for line in more)


def _command_line(command: CommandRecord) -> str:
    outcome = shortened(command.outcome or "not answered yet", _OUTCOME_WIDTH)
    dropped = "dropped: " if command.dropped else ""
    return f"{'told':16} {command.created_at.isoformat()} {command.kind}: {dropped}{outcome}"


def _find_by_id(known: Sequence[WorkerRecord], ids: Sequence[str]) -> list[WorkerRecord]:
    """Find the workers that are meant by ids or their beginnings."""
    found: dict[str, WorkerRecord] = {}
    for given in ids:
        matches = [worker for worker in known if worker.id.startswith(given)]
        if not matches:
            raise worker_not_found(given)
        if len(matches) > 1:
            listed = ", ".join(worker.id for worker in matches)
            raise CommandFailure(f"{given!r} may be any of {listed}; write more of it", ExitCode.USAGE)
        found[matches[0].id] = matches[0]
    return list(found.values())


def _worker_row(worker: WorkerRecord, now: datetime) -> tuple[str, ...]:
    state = f"{worker.state}, paused" if worker.paused and worker.state == "alive" else worker.state
    return (
        worker.id,
        state,
        worker.host,
        str(worker.pid),
        ",".join(worker.queues) or "none, runs no jobs",
        f"{worker.running}/{worker.slots}",
        str(worker.done),
        str(worker.failed),
        relative_time(worker.started_at, now),
        relative_time(worker.heartbeat_at, now),
    )


def _worker_values(worker: WorkerRecord) -> dict[str, object]:
    """Return a worker as JSON values, its lag in seconds."""
    values: dict[str, object] = msgspec.to_builtins(worker)
    values["loop_lag"] = worker.loop_lag.total_seconds()
    return values
