"""`duetime worker` and `duetime scheduler`: run until signals stop them, and log to standard error."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from duetime.cli.command import load_scheduler, read_duration
from duetime.cli.output import CommandFailure, ExitCode
from duetime.model.job import DEFAULT_QUEUE
from duetime.scheduler.process import LogFormat, configure_logging, run_until_stopped
from duetime.scheduler.scheduler_worker import WorkerSettings

F = TypeVar("F", bound=Callable[..., Any])


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
    }
    _run(target, settings, log_level=log_level, log_format=log_format)


def _run(target: str, settings: WorkerSettings, *, log_level: str, log_format: LogFormat) -> None:
    configure_logging(log_level, log_format)
    run_until_stopped(load_scheduler(target), settings)


def _read_queue_limit(text: str) -> tuple[str, int | None]:
    name, separator, limit = text.partition("=")
    if not separator:
        return name, None
    if not limit.isdecimal():
        raise CommandFailure(
            f"--queue {text!r}: the limit must be a whole number, as in mail=5", ExitCode.USAGE
        )
    return name, int(limit)


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
    _run(target, {"jobs": False}, log_level=log_level, log_format=log_format)
