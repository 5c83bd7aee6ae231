"""`duetime worker` and `duetime scheduler`: run until signals stop them, and log to standard error."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any, Literal, Self, TypeAlias, TypeVar

import click

from duetime.cli.command import load_scheduler, read_duration
from duetime.cli.output import CommandFailure, ExitCode
from duetime.model.job import DEFAULT_QUEUE
from duetime.model.text import printable
from duetime.model.urls import redact, redact_text
from duetime.runtime.settling.job_log import RECORD_FIELDS
from duetime.runtime.settling.job_log import log as job_log
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.scheduler_worker import WorkerSettings

F = TypeVar("F", bound=Callable[..., Any])
LogFormat: TypeAlias = Literal["console", "json"]

log = logging.getLogger("duetime.cli")

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SIGNALS_TO_EXIT_AT_ONCE = 3
_EXIT_CODE_OF_SIGNAL = 128


class StopSignals:
    """Catches SIGINT and SIGTERM while it is entered, in the main thread of a running event loop."""

    def __init__(self) -> None:
        self._count = 0
        self._first = asyncio.Event()
        self._second: Callable[[], None] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            # Not loop.add_signal_handler, which Windows lacks and which a blocked loop would never call.
            self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    async def first(self) -> None:
        """Wait for the first signal."""
        await self._first.wait()

    def on_second(self, act: Callable[[], None]) -> None:
        """Say what to do when a second signal comes."""
        self._second = act

    def _caught(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._count += 1
        if self._count >= _SIGNALS_TO_EXIT_AT_ONCE:
            os._exit(_EXIT_CODE_OF_SIGNAL + number)
        self._loop.call_soon_threadsafe(self._act, self._count, signal.Signals(number).name)

    def _act(self, count: int, name: str) -> None:
        if count == 1:
            log.info("%s: stopping; a second signal cancels what still runs", name)
            self._first.set()
        elif self._second is not None:
            log.info("%s again: cancelling what still runs", name)
            self._second()


class ConsoleFormatter(logging.Formatter):
    """One line per record, and the lines of its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text that no terminal obeys."""
        moment = datetime.fromtimestamp(record.created).astimezone()
        time = moment.isoformat(sep=" ", timespec="milliseconds")
        line = f"{time} {record.levelname:<8} {record.name}: {record.getMessage()}"
        return "\n".join([printable(redact_text(line)), *_indented(_traceback_text(record).splitlines())])


class JsonFormatter(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        values = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact_text(record.getMessage()),
            "pid": record.process,
        }
        if record.name == job_log.name:
            values |= {name: getattr(record, name, None) for name in RECORD_FIELDS}
        if details := _traceback_text(record):
            values["exception"] = details
        return json.dumps(values)


def log_options(command: F) -> F:
    """Add the options that say how much to log, and how."""
    level = click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="How much to say, on standard error.",
    )
    style = click.option(
        "--log-format",
        type=click.Choice(["console", "json"]),
        default="console",
        show_default=True,
        help="For people or for machines.",
    )
    return level(style(command))


def configure_logging(level: str, style: LogFormat) -> None:
    """Send every log line of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ConsoleFormatter() if style == "console" else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _traceback_text(record: logging.LogRecord) -> str:
    # Records of jobs and of child processes bring their traceback as text.
    parts = [record.exc_text] if record.exc_text else []
    parts += [logging.Formatter().formatException(record.exc_info)] if record.exc_info and not parts else []
    parts += [record.stack_info] if record.stack_info else []
    return redact_text("\n".join(parts))


def _indented(lines: list[str]) -> list[str]:
    """Return lines that cannot be taken for records."""
    indent = "" if all(line.startswith("  ") for line in lines) else "  "
    return [f"{indent}{printable(line.expandtabs())}" for line in lines]


@click.command()
@click.argument("target", metavar="MODULE:OBJECT")
@click.option("--concurrency", type=int, default=100, show_default=True, help="How many jobs run at once.")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME[=LIMIT]",
    help=f"A queue to work on, perhaps with a limit of its own; may be repeated.  [default: {DEFAULT_QUEUE}]",
)
@click.option(
    "--grace",
    type=read_duration,
    default="30s",
    show_default=True,
    metavar="DURATION",
    help="How long running jobs may go on when the worker is asked to stop.",
)
@click.option(
    "--cpu-children",
    type=int,
    metavar="N",
    help="How many jobs run at once in child processes.  [default: the number of processors]",
)
@click.option("--cpu-max-jobs", type=int, metavar="N", help="Replace a child process after this many jobs.")
@click.option(
    "--cpu-max-memory",
    metavar="SIZE",
    help="Replace a child process that holds more than this after a job, such as 500MB.",
)
@click.option("--no-schedules", is_flag=True, help="Run jobs, but leave schedules to other workers.")
@click.option("--no-job-logs", is_flag=True, help="Do not keep what jobs log.")
@log_options
def worker(
    *,
    target: str,
    concurrency: int,
    queues: tuple[str, ...],
    grace: timedelta,
    cpu_children: int | None,
    cpu_max_jobs: int | None,
    cpu_max_memory: str | None,
    no_schedules: bool,
    no_job_logs: bool,
    log_level: str,
    log_format: LogFormat,
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
    """  # noqa: D301
    settings: WorkerSettings = {
        "concurrency": concurrency,
        "queues": dict(map(_read_queue_limit, queues)) or [DEFAULT_QUEUE],
        "grace": grace,
        "cpu_children": cpu_children,
        "cpu_max_jobs": cpu_max_jobs,
        "cpu_max_memory": cpu_max_memory,
        "schedules": not no_schedules,
        "capture_logs": not no_job_logs,
        "dedicated": True,
    }
    says = (
        "running jobs and leaving schedules to others"
        if no_schedules
        else "running jobs and firing schedules"
    )
    run_until_stopped(target, settings, says=says, log_level=log_level, log_format=log_format)


def run_until_stopped(
    target: str, settings: WorkerSettings, *, says: str, log_level: str, log_format: LogFormat
) -> None:
    """Run a worker in a process of its own until it is stopped."""
    configure_logging(log_level, log_format)
    scheduler = load_scheduler(target)
    if not scheduler.tasks:
        log.warning("%s has no tasks; import the modules that define them where it is made", target)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        if unfinished := runner.run(_run_worker(scheduler, settings, says)):
            # Jobs that do not end would keep the process up; another worker rescues them.
            log.error("%d job(s) did not end; this process ends without them", unfinished)
            logging.shutdown()
            os._exit(ExitCode.FAILURE)


async def _run_worker(scheduler: Scheduler, settings: WorkerSettings, says: str) -> int:
    """Run a worker until it is stopped and return how many of its jobs would not end."""
    with StopSignals() as signals:
        async with scheduler.worker(**settings) as running:
            log.info("working on %s: %s; stop with Ctrl-C or SIGTERM", redact(scheduler.url), says)
            signals.on_second(running.hurry)
            await _first_of(signals.first(), running.asked_to_stop())
    if running.lost is not None:
        raise running.lost
    return running.stats().running


async def _first_of(*events: Coroutine[Any, Any, None]) -> None:
    """Wait for the first of these."""
    waiting = [asyncio.ensure_future(event) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for waiter in waiting:
        waiter.cancel()


def _read_queue_limit(text: str) -> tuple[str, int | None]:
    name, separator, limit = text.partition("=")
    if not separator:
        return name, None
    if not limit.isdecimal():
        raise CommandFailure(
            f"--queue {text!r}: the limit must be a whole number, as in mail=5", ExitCode.USAGE
        )
    return name, int(limit)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event loop where it is installed."""
    if importlib.util.find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    return factory


@click.command(short_help="Fire schedules, and leave jobs to workers.")
@click.argument("target", metavar="MODULE:OBJECT")
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
    run_until_stopped(
        target,
        {"jobs": False, "dedicated": True},
        says="firing schedules and running no jobs",
        log_level=log_level,
        log_format=log_format,
    )
