"""`duetime workers`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias, TypedDict, TypeVar, Unpack

import click
import msgspec

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.failures import ExitCode, Failure, code_of
from duetime.cli.text import relative, say, say_json, say_lines, say_table, shortened
from duetime.errors import WorkerGone, WorkerNotFound
from duetime.model.instants import to_datetime
from duetime.scheduler.lookup import no_worker
from duetime.scheduler.records import CommandRecord, WorkerRecord
from duetime.scheduler.scheduler import Scheduler

F = TypeVar("F", bound=Callable[..., object])

_OUTCOME_WIDTH = 60
_WAIT = "10s"


class Reply(NamedTuple):
    """What came of a command to one worker."""

    answer: str | None
    error: str | None = None
    code: ExitCode = ExitCode.OK


class Whom(TypedDict):
    """Which workers are meant."""

    url: str | None
    namespace: str
    worker_ids: tuple[str, ...]
    everyone: bool


class Asked(Whom):
    """What all commands to workers take."""

    as_json: bool


Tell: TypeAlias = Callable[[Scheduler, str], Awaitable[str | None]]


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


def told(command: F) -> F:
    """Add what all commands to workers take."""
    ids = click.argument("worker_ids", metavar="ID...", nargs=-1, callback=options.read_ids)
    everyone = click.option("--all", "everyone", is_flag=True, help="All workers that are alive.")
    wait = click.option(
        "--wait",
        type=options.duration,
        default=_WAIT,
        show_default=True,
        metavar="DURATION",
        help="How long to wait for the answers.",
    )
    return options.database(ids(everyone(wait(options.as_json(command)))))


@workers.command("list")
@options.database
@click.option("--all", "everyone", is_flag=True, help="Also workers that have stopped or died.")
@options.as_json
def list_workers(*, url: str | None, namespace: str, everyone: bool, as_json: bool) -> None:
    """List workers, newest first."""

    async def read() -> tuple[list[WorkerRecord], datetime]:
        async with client(url, namespace) as scheduler:
            return await scheduler.workers.list(), to_datetime(await scheduler.store.now())

    known, now = asyncio.run(read())
    found = [worker for worker in known if everyone or worker.state == "alive"]
    if as_json:
        say_json([_values(worker) for worker in found])
    elif found:
        head = ("ID", "STATE", "HOST", "PID", "QUEUES", "RUNNING", "DONE", "FAILED", "STARTED", "HEARD OF")
        say_table(head, (_row(worker, now) for worker in found))
    else:
        say("no workers")


@workers.command()
@options.database
@click.argument("worker_id", metavar="ID")
@options.as_json
def show(*, url: str | None, namespace: str, worker_id: str, as_json: bool) -> None:
    """Show all that is known about a worker, and what it was told last."""

    async def read() -> tuple[WorkerRecord, list[CommandRecord]]:
        async with client(url, namespace) as scheduler:
            (worker,) = _named(await scheduler.workers.list(), [worker_id])
            return worker, await scheduler.workers.commands(worker.id)

    worker, commands = asyncio.run(read())
    if as_json:
        say_json(_values(worker) | {"commands": [msgspec.to_builtins(command) for command in commands]})
        return
    for name, value in _values(worker).items():
        if value is not None:
            say(f"{name:16} {value if isinstance(value, str) else msgspec.json.encode(value).decode()}")
    for command in commands:
        outcome = shortened(command.outcome or "not answered yet", _OUTCOME_WIDTH)
        dropped = "dropped: " if command.dropped else ""
        say(f"{'told':16} {command.created_at.isoformat()} {command.kind}: {dropped}{outcome}")


@workers.command()
@told
@click.option("--reason", help="Kept with the worker, for others to read.")
def pause(
    *,
    reason: str | None,
    wait: timedelta,
    **asked: Unpack[Asked],
) -> None:
    """Have workers start nothing more; what runs goes on."""

    async def tell(scheduler: Scheduler, worker: str) -> str | None:
        return await scheduler.workers.pause(worker, reason=reason, wait=wait)

    _tell(tell, **asked)


@workers.command()
@told
def resume(
    *,
    wait: timedelta,
    **asked: Unpack[Asked],
) -> None:
    """Have paused workers start jobs again."""

    async def tell(scheduler: Scheduler, worker: str) -> str | None:
        return await scheduler.workers.resume(worker, wait=wait)

    _tell(tell, **asked)


@workers.command()
@told
@click.option("--now", is_flag=True, help="Without the grace time: cancel what runs.")
@click.option("--reason", help="Kept with the command.")
def stop(
    *,
    now: bool,
    reason: str | None,
    wait: timedelta,
    **asked: Unpack[Asked],
) -> None:
    """Have workers stop as after a signal: running jobs have the grace time to end.

    Waits until the workers have begun to stop, not until they have ended. One that is embedded in a program stops
    working, and the program goes on.
    """

    async def tell(scheduler: Scheduler, worker: str) -> str | None:
        return await scheduler.workers.stop(worker, now=now, reason=reason, wait=wait)

    _tell(tell, **asked)


@workers.command()
@told
def stacks(
    *,
    wait: timedelta,
    **asked: Unpack[Asked],
) -> None:
    """Show where all threads and tasks of workers stand, also when an event loop is blocked."""

    async def tell(scheduler: Scheduler, worker: str) -> str | None:
        return await scheduler.workers.stacks(worker, wait=wait)

    _tell(tell, **asked)


def _tell(tell: Tell, *, as_json: bool, **whom: Unpack[Whom]) -> None:
    replies = asyncio.run(_replies(tell, **whom))
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


async def _replies(
    tell: Tell, *, url: str | None, namespace: str, worker_ids: Sequence[str], everyone: bool
) -> dict[str, Reply]:
    """Tell all workers at once, so that a slow one does not hold up the others."""
    if bool(worker_ids) == everyone:
        raise Failure("name the workers or say --all", ExitCode.USAGE)

    async def ask(worker: WorkerRecord) -> Reply:
        try:
            return Reply(await tell(scheduler, worker.id))
        except (WorkerGone, WorkerNotFound, TimeoutError) as error:
            return Reply(None, str(error), code_of(error))

    async with client(url, namespace) as scheduler:
        known = await scheduler.workers.list()
        alive = [worker for worker in known if worker.state == "alive"]
        chosen = alive if everyone else _named(known, worker_ids)
        replies = await asyncio.gather(*map(ask, chosen))
        return {worker.id: reply for worker, reply in zip(chosen, replies, strict=True)}


def _named(known: Sequence[WorkerRecord], ids: Sequence[str]) -> list[WorkerRecord]:
    """Find the workers that are meant by ids or their beginnings."""
    found: dict[str, WorkerRecord] = {}
    for given in ids:
        matches = [worker for worker in known if worker.id.startswith(given)]
        if not matches:
            raise no_worker(given)
        if len(matches) > 1:
            listed = ", ".join(worker.id for worker in matches)
            raise Failure(f"{given!r} may be any of {listed}; write more of it", ExitCode.USAGE)
        found[matches[0].id] = matches[0]
    return list(found.values())


def _row(worker: WorkerRecord, now: datetime) -> tuple[str, ...]:
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
        relative(worker.started_at, now),
        relative(worker.heartbeat_at, now),
    )


def _values(worker: WorkerRecord) -> dict[str, object]:
    """Return a worker as JSON values, its lag in seconds."""
    values: dict[str, object] = msgspec.to_builtins(worker)
    values["loop_lag"] = worker.loop_lag.total_seconds()
    return values
