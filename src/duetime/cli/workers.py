"""`duetime worker` and `duetime scheduler` run until signals stop them; `duetime workers` lists them and tells them what to do."""

from __future__ import annotations

import asyncio
import functools
import itertools
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias, TypeVar, cast, get_args

import click
import msgspec

from duetime.cli import output
from duetime.cli.command import (
    PendingAnswer,
    answer_command,
    by_option,
    client_command,
    connected_store,
    database_options,
    load_scheduler,
    option,
    store_time,
    target_argument,
    words_argument,
)
from duetime.cli.ids import meant_worker, meant_workers
from duetime.cli.output import Answer, CommandFailure, ExitCode
from duetime.errors import StoreUnavailable, WorkerGone, WorkerNotFound
from duetime.model.stored.jobs import LiveWorkers
from duetime.model.text import check_whole, printable
from duetime.model.urls import redact_text
from duetime.runtime.identity import host_key, is_gone
from duetime.runtime.options import worker_options
from duetime.scheduler.processes.supervisor import supervise
from duetime.scheduler.processes.worker_process import (
    HealthAddress,
    LogFormat,
    WorkerSettings,
    configure_logging,
    run_until_stopped,
)
from duetime.scheduler.records import CommandRecord, WorkerRecord
from duetime.scheduler.scheduler import Scheduler

F = TypeVar("F", bound=Callable[..., Any])

_OUTCOME_WIDTH = 60


SendCommand: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Sends a command to the worker of an id, and returns the worker's answer."""


@click.group()
def workers() -> None:
    """List and show workers, and tell them what to do.

    A worker is named by its id, with or without dashes, by the beginning of it, or by its --name, which stands for all
    that are alive and have it; `-` reads ids from standard input.

    \b
      duetime workers list
      duetime workers check
      duetime workers pause 7f3a --reason reindexing
      duetime workers stop --all
      duetime workers stacks 7f3a
    """  # noqa: D301


def worker_command(function: Callable[..., SendCommand]) -> Callable[..., None]:
    """Make a command that sends what the function returns to the workers that are named.

    They are told all at once, so that a slow one does not hold up the others.
    """

    @functools.wraps(function)
    def run(
        scheduler: Scheduler, *, worker_ids: tuple[str, ...], everyone: bool, **given: Any
    ) -> PendingAnswer:
        if bool(worker_ids) == everyone:
            raise CommandFailure("name the workers or say --all")
        return _replies_of_workers(scheduler, function(scheduler, **given), worker_ids)

    ids = words_argument("worker_ids", "ID...", "ids", required=False)
    everyone = click.option("--all", "everyone", is_flag=True, help="All workers that are alive.")
    wait = option("--wait", "DURATION", "How long to wait for the answers.", default="10s")
    return client_command(ids(everyone(wait(run))))


@workers.command("list")
@client_command
@click.option("--all", "everyone", is_flag=True, help="Also workers that have stopped or died.")
async def list_workers(scheduler: Scheduler, *, everyone: bool) -> Answer:
    """List workers, newest first."""
    known, now = await scheduler.workers.list(), await store_time(scheduler)
    found = [worker for worker in known if everyone or worker.state == "alive"]
    head = (
        "ID",
        "NAME",
        "STATE",
        "HOST",
        "PID",
        "QUEUES",
        "RUNNING",
        "DONE",
        "FAILED",
        "STARTED",
        "HEARD OF",
    )
    return Answer(
        values=[_worker_values(worker) for worker in found],
        lines=output.table_or("no workers", head, (_worker_row(worker, now) for worker in found)),
    )


@workers.command()
@client_command
@click.argument("worker_id", metavar="ID")
async def show(scheduler: Scheduler, *, worker_id: str) -> Answer:
    """Show all that is known about a worker, and what it was told last."""
    worker = meant_worker(await scheduler.workers.list(), worker_id)
    commands, values = await scheduler.workers.commands(worker.id), _worker_values(worker)
    return Answer(
        values=values | {"commands": [msgspec.to_builtins(command) for command in commands]},
        lines=(*output.record_lines(values), *map(_command_line, commands)),
    )


@workers.command(short_help="Exit with 0 if a worker is alive on this machine.")
@click.argument("name", required=False)
@database_options
@answer_command
async def check(*, name: str | None, url: str | None, namespace: str) -> Answer:
    """Exit with 0 if a worker is alive on this machine, or in this container, and with 1 if none is.

    NAME: only those that were started with this --name. While the database cannot be reached it exits with 0: workers
    wait for it, and to start them anew would not help.

    \b
      duetime workers check
      duetime workers check mail
    """  # noqa: D301
    try:
        async with connected_store(url, namespace, check=True) as store:
            known = await store.workers()
    except StoreUnavailable as error:
        return Answer(values={"pids": None}, lines=[f"cannot tell: {redact_text(str(error))}"])
    here = (socket.gethostname(), host_key())
    pids = [
        one.pid
        for one in LiveWorkers.of(known).alive
        if (one.host, one.host_key) == here
        and name in (None, one.name)
        and not is_gone(one.pid, one.pid_started)
    ]
    alive = f"alive: pid {', '.join(map(str, pids))}" if pids else "no worker is alive here"
    return Answer(values={"pids": pids}, lines=[alive], code=ExitCode.OK if pids else ExitCode.FAILURE)


@workers.command()
@worker_command
@click.option("--reason", help="Kept with the worker, for others to read.")
@by_option
def pause(scheduler: Scheduler, *, reason: str | None, by: str | None, wait: timedelta) -> SendCommand:
    """Have workers start nothing more; what runs goes on."""
    return lambda worker: scheduler.workers.pause(worker, reason=reason, by=by, wait=wait)


@workers.command()
@worker_command
@by_option
def resume(scheduler: Scheduler, *, by: str | None, wait: timedelta) -> SendCommand:
    """Have paused workers start jobs again."""
    return lambda worker: scheduler.workers.resume(worker, by=by, wait=wait)


@workers.command(short_help="Have workers stop as after a signal.")
@worker_command
@click.option("--now", is_flag=True, help="Without the grace time: cancel what runs.")
@click.option("--reason", help="Kept with the command.")
@by_option
def stop(
    scheduler: Scheduler, *, now: bool, reason: str | None, by: str | None, wait: timedelta
) -> SendCommand:
    """Have workers stop as after a signal: running jobs have the grace time to end.

    Waits until the workers have begun to stop, not until they have ended. One that is embedded in a program stops
    working, and the program goes on.
    """
    return lambda worker: scheduler.workers.stop(worker, now=now, reason=reason, by=by, wait=wait)


@workers.command(short_help="Show where threads and tasks of workers stand.")
@worker_command
def stacks(scheduler: Scheduler, *, wait: timedelta) -> SendCommand:
    """Show where all threads and tasks of workers stand, also when an event loop is blocked."""
    return lambda worker: scheduler.workers.stacks(worker, wait=wait)


async def _replies_of_workers(scheduler: Scheduler, send: SendCommand, ids: Sequence[str]) -> Answer:
    """Send to these workers, or without ids to all that are alive."""

    async def ask(worker_id: str) -> tuple[str | None, str | None, ExitCode]:
        try:
            return await send(worker_id), None, ExitCode.OK
        except (WorkerGone, WorkerNotFound, TimeoutError) as error:
            return None, str(error), output.exit_code_of(error)

    known = await scheduler.workers.list()
    alive = [worker for worker in known if worker.state == "alive"]
    told = [worker.id for worker in (meant_workers(known, ids) if ids else alive)]
    replies = dict(zip(told, await asyncio.gather(*map(ask, told)), strict=True))
    lines = (_reply_lines(worker, answer or error) for worker, (answer, error, _) in replies.items())
    return Answer(
        values={worker: {"answer": answer, "error": error} for worker, (answer, error, _) in replies.items()},
        lines=[*itertools.chain(*lines)] or ["no workers"],
        code=max((code for *_, code in replies.values()), default=ExitCode.OK),
    )


def _reply_lines(worker_id: str, reply: str | None) -> Iterator[str]:
    first, *more = (reply or "told").splitlines()
    yield f"{worker_id}  {first}"
    yield from (f"  {line.expandtabs()}" for line in more)


def _command_line(command: CommandRecord) -> str:
    outcome = output.shortened(command.outcome or "not answered yet", _OUTCOME_WIDTH)
    dropped = "dropped: " if command.dropped else ""
    return f"{'told':16} {command.created_at.isoformat()} {command.kind}: {dropped}{outcome}"


def _worker_row(worker: WorkerRecord, now: datetime) -> tuple[str, ...]:
    state = f"{worker.state}, paused" if worker.paused and worker.state == "alive" else worker.state
    return (
        worker.id,
        worker.name or "",
        state,
        worker.host,
        str(worker.pid),
        ",".join(worker.queues) or "none, runs no jobs",
        f"{worker.running}/{worker.slots}",
        str(worker.done),
        str(worker.failed),
        output.relative_time(worker.started_at, now),
        output.relative_time(worker.heartbeat_at, now),
    )


def _worker_values(worker: WorkerRecord) -> dict[str, object]:
    """Return a worker as JSON values, its lag in seconds."""
    values: dict[str, object] = msgspec.to_builtins(worker)
    values["loop_lag"] = worker.loop_lag.total_seconds()
    return values


_LAST_PORT = 65_535
LOOPBACK = "127.0.0.1"
_LEVELS = click.Choice(["debug", "info", "warning", "error"])
_FORMATS = click.Choice(get_args(LogFormat))


def log_options(command: F) -> F:
    """Add the options that say how much to log, and how."""
    level = option("--log-level", None, "How much to log, on standard error.", type=_LEVELS, default="info")
    style = option(
        "--log-format",
        None,
        "Whether the log is for people or for machines.",
        type=_FORMATS,
        default="console",
    )
    return level(style(command))


@click.command()
@target_argument
@click.option("--concurrency", type=int, default=100, help="How many jobs run at once.")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME[=LIMIT]",
    help="A queue to work on, perhaps with a limit of its own; may be repeated; else all that tasks and schedules name.",
)
@option(
    "--grace", "DURATION", "How long running jobs may go on when the worker is asked to stop.", default="30s"
)
@option(
    "--cpu-children",
    "N",
    "How many jobs run at once in child processes.  [default: the number of processors]",
)
@option("--cpu-max-jobs", "N", "Replace a child process after this many jobs.")
@option(
    "--cpu-max-memory",
    "SIZE",
    "Replace a child process that holds more than this after a job, such as 500MB.",
)
@option(
    "--name", "NAME", "What it is called in lists, and for `duetime workers check`; several may share it."
)
@click.option("--burst", is_flag=True, help="Run what is due, then end.")
@option("--max-jobs", "N", "End after this many jobs.")
@click.option(
    "--processes", type=int, default=1, help="How many processes work; those that die are replaced."
)
@click.option("--reload", is_flag=True, help="Start anew when a Python file below this folder changes.")
@option("--health-port", "N", "Tell over HTTP, on this port, whether the process is well: /live, /ready.")
@option(
    "--health-host", "HOST", "The address for that; by default only this machine can ask.", default=LOOPBACK
)
@click.option("--no-schedules", is_flag=True, help="Run jobs, but leave schedules to other workers.")
@click.option("--no-job-logs", is_flag=True, help="Do not keep what jobs log.")
@log_options
def worker(
    *,
    target: str,
    queues: tuple[str, ...],
    no_schedules: bool,
    no_job_logs: bool,
    processes: int,
    reload: bool,
    health_port: int | None,
    health_host: str,
    **given: Any,
) -> None:
    """Run due jobs and fire schedules until stopped.

    Start as many as you like, on as many machines; each job still runs once.

    SIGINT or SIGTERM stops it: nothing new is started, and running jobs have the grace time to end. A second
    signal cancels them at once, a third one leaves everything as it is. Jobs that were cut short run again as
    their tasks say. The exit code is 0 when all jobs had ended or were cancelled, 4 when a SQLite file was
    deleted or replaced meanwhile, and 70 when the event loop hung for so long that the worker gave up.

    \b
      duetime worker jobs:scheduler
      duetime worker jobs:scheduler --concurrency 20 --queue default --queue mail=5
      duetime worker jobs:scheduler --health-port 8080
    """  # noqa: D301
    health = _health_address(health_host, health_port, processes=processes)
    settings: dict[str, Any] = {"schedules": not no_schedules, "capture_logs": not no_job_logs}
    settings["queues"] = dict(map(_read_queue_limit, queues)) or None
    configure_logging(given.pop("log_level"), given.pop("log_format"))
    worker_options(**settings, **given)
    if not reload:
        load_scheduler(target)  # What is wrong with it is said once, and not by each process.
    code = supervise(processes, reload=reload)
    if code is not None:
        raise click.exceptions.Exit(code)
    run_until_stopped(load_scheduler(target), cast("WorkerSettings", settings | given), health=health)


def _health_address(host: str, port: int | None, *, processes: int) -> HealthAddress | None:
    """Return where health is told; several processes cannot share a port."""
    if port is None:
        return None
    if processes != 1:
        raise CommandFailure("--health-port is for one process; start each with a port of its own")
    return HealthAddress(host, check_whole(port, 0, _LAST_PORT, what="--health-port"))


def _read_queue_limit(text: str) -> tuple[str, int | None]:
    if "," in text:
        each = " ".join(f"--queue {part.strip()}" for part in text.split(","))
        raise CommandFailure(f"--queue names one queue; repeat it for several: {printable(each)}")
    name, separator, limit = text.partition("=")
    if not separator:
        return name, None
    if not limit.isdecimal():
        raise CommandFailure(f"--queue {text!r}: the limit must be a whole number, as in mail=5")
    return name, int(limit)


@click.command(short_help="Fire schedules, and leave jobs to workers.")
@target_argument
@log_options
def scheduler(*, target: str, log_level: str, log_format: LogFormat) -> None:
    """Fire schedules until stopped, and run no jobs.

    Workers fire schedules, too, unless they are started with --no-schedules; any number of processes may do so, and
    each occurrence still makes one job. This one is for those who want them apart: it stores the schedules of the
    code, makes their jobs when they are due, and takes over what dead workers have left.

    \b
      duetime scheduler jobs:scheduler
      duetime worker jobs:scheduler --no-schedules
    """  # noqa: D301
    configure_logging(log_level, log_format)
    run_until_stopped(load_scheduler(target), {"jobs": False})
