"""`duetime workers`: list and show workers, and tell them what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias, TypedDict, TypeVar, Unpack

import click
import msgspec

from duetime.cli.loading import client
from duetime.cli.options import database_options, json_option, read_duration, read_ids
from duetime.cli.output import (
    CommandFailure,
    ExitCode,
    exit_code_of,
    relative_time,
    say,
    say_json,
    say_lines,
    say_table,
    shortened,
)
from duetime.errors import WorkerGone, WorkerNotFound
from duetime.model.time import to_datetime
from duetime.scheduler.lookup import worker_not_found
from duetime.scheduler.records import CommandRecord, WorkerRecord
from duetime.scheduler.scheduler import Scheduler

F = TypeVar("F", bound=Callable[..., object])

_OUTCOME_WIDTH = 60
_DEFAULT_WAIT = "10s"


class CommandReply(NamedTuple):
    """What came of a command to one worker."""

    answer: str | None
    error: str | None = None
    code: ExitCode = ExitCode.OK


class WorkerChoice(TypedDict):
    """Which workers are meant."""

    url: str | None
    namespace: str
    worker_ids: tuple[str, ...]
    everyone: bool


class WorkerCommandArguments(WorkerChoice):
    """What all commands to workers take."""

    as_json: bool


SendCommand: TypeAlias = Callable[[Scheduler, str], Awaitable[str | None]]


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


def worker_command_options(command: F) -> F:
    """Add what all commands to workers take."""
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
    return database_options(ids(everyone(wait(json_option(command)))))


@workers.command("list")
@database_options
@click.option("--all", "everyone", is_flag=True, help="Also workers that have stopped or died.")
@json_option
def list_workers(*, url: str | None, namespace: str, everyone: bool, as_json: bool) -> None:
    """List workers, newest first."""

    async def read() -> tuple[list[WorkerRecord], datetime]:
        async with client(url, namespace) as scheduler:
            return await scheduler.workers.list(), to_datetime(await scheduler.store.now())

    known, now = asyncio.run(read())
    found = [worker for worker in known if everyone or worker.state == "alive"]
    if as_json:
        say_json([_worker_values(worker) for worker in found])
    elif found:
        head = ("ID", "STATE", "HOST", "PID", "QUEUES", "RUNNING", "DONE", "FAILED", "STARTED", "HEARD OF")
        say_table(head, (_worker_row(worker, now) for worker in found))
    else:
        say("no workers")


@workers.command()
@database_options
@click.argument("worker_id", metavar="ID")
@json_option
def show(*, url: str | None, namespace: str, worker_id: str, as_json: bool) -> None:
    """Show all that is known about a worker, and what it was told last."""

    async def read() -> tuple[WorkerRecord, list[CommandRecord]]:
        async with client(url, namespace) as scheduler:
            (worker,) = _find_by_id(await scheduler.workers.list(), [worker_id])
            return worker, await scheduler.workers.commands(worker.id)

    worker, commands = asyncio.run(read())
    if as_json:
        say_json(
            _worker_values(worker) | {"commands": [msgspec.to_builtins(command) for command in commands]}
        )
        return
    for name, value in _worker_values(worker).items():
        if value is not None:
            say(f"{name:16} {value if isinstance(value, str) else msgspec.json.encode(value).decode()}")
    for command in commands:
        outcome = shortened(command.outcome or "not answered yet", _OUTCOME_WIDTH)
        dropped = "dropped: " if command.dropped else ""
        say(f"{'told':16} {command.created_at.isoformat()} {command.kind}: {dropped}{outcome}")


@workers.command()
@worker_command_options
@click.option("--reason", help="Kept with the worker, for others to read.")
def pause(
    *,
    reason: str | None,
    wait: timedelta,
    **asked: Unpack[WorkerCommandArguments],
) -> None:
    """Have workers start nothing more; what runs goes on."""

    async def tell(scheduler: Scheduler, worker: str) -> str | None:
        return await scheduler.workers.pause(worker, reason=reason, wait=wait)

    _send_and_report(tell, **asked)


@workers.command()
@worker_command_options
def resume(
    *,
    wait: timedelta,
    **asked: Unpack[WorkerCommandArguments],
) -> None:
    """Have paused workers start jobs again."""

    async def tell(scheduler: Scheduler, worker: str) -> str | None:
        return await scheduler.workers.resume(worker, wait=wait)

    _send_and_report(tell, **asked)


@workers.command()
@worker_command_options
@click.option("--now", is_flag=True, help="Without the grace time: cancel what runs.")
@click.option("--reason", help="Kept with the command.")
def stop(
    *,
    now: bool,
    reason: str | None,
    wait: timedelta,
    **asked: Unpack[WorkerCommandArguments],
) -> None:
    """Have workers stop as after a signal: running jobs have the grace time to end.

    Waits until the workers have begun to stop, not until they have ended. One that is embedded in a program stops
    working, and the program goes on.
    """

    async def tell(scheduler: Scheduler, worker: str) -> str | None:
        return await scheduler.workers.stop(worker, now=now, reason=reason, wait=wait)

    _send_and_report(tell, **asked)


@workers.command()
@worker_command_options
def stacks(
    *,
    wait: timedelta,
    **asked: Unpack[WorkerCommandArguments],
) -> None:
    """Show where all threads and tasks of workers stand, also when an event loop is blocked."""

    async def tell(scheduler: Scheduler, worker: str) -> str | None:
        return await scheduler.workers.stacks(worker, wait=wait)

    _send_and_report(tell, **asked)


def _send_and_report(tell: SendCommand, *, as_json: bool, **whom: Unpack[WorkerChoice]) -> None:
    replies = asyncio.run(_replies_of_workers(tell, **whom))
    if as_json:
        say_json({worker: {"answer": r.answer, "error": r.error} for worker, r in replies.items()})
    elif not replies:
        say("no workers")
    else:
        for worker, reply in replies.items():
            first, *more = (reply.answer or reply.error or "told").splitlines()
            say(f"{worker}  {first}")
            say_lines("\n".join(more), indent="  ")
    if worst := max((reply.code for reply in replies.values()), default=ExitCode.OK):
        raise click.exceptions.Exit(worst)


async def _replies_of_workers(
    tell: SendCommand, *, url: str | None, namespace: str, worker_ids: Sequence[str], everyone: bool
) -> dict[str, CommandReply]:
    """Tell all workers at once, so that a slow one does not hold up the others."""
    if bool(worker_ids) == everyone:
        raise CommandFailure("name the workers or say --all", ExitCode.USAGE)

    async def ask(worker: WorkerRecord) -> CommandReply:
        try:
            return CommandReply(await tell(scheduler, worker.id))
        except (WorkerGone, WorkerNotFound, TimeoutError) as error:
            return CommandReply(None, str(error), exit_code_of(error))

    async with client(url, namespace) as scheduler:
        known = await scheduler.workers.list()
        alive = [worker for worker in known if worker.state == "alive"]
        chosen = alive if everyone else _find_by_id(known, worker_ids)
        replies = await asyncio.gather(*map(ask, chosen))
        return {worker.id: reply for worker, reply in zip(chosen, replies, strict=True)}


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
