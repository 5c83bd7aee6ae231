"""`duetime worker`."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import os
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import click

from duetime.cli import logs, options
from duetime.cli.failures import ExitCode, Failure
from duetime.cli.loading import load_scheduler
from duetime.cli.stopping import StopSignals
from duetime.model.job import DEFAULT_QUEUE
from duetime.model.urls import redact
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.serving import WorkerSettings

log = logging.getLogger("duetime.cli")


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
    type=options.duration,
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
@click.option("--cpu-max-jobs", type=int, metavar="N", help="Replace a child process after so many jobs.")
@click.option(
    "--cpu-max-memory",
    metavar="SIZE",
    help="Replace a child process that holds more than this after a job, such as 500MB.",
)
@click.option("--no-schedules", is_flag=True, help="Run jobs, but leave schedules to other workers.")
@click.option("--no-job-logs", is_flag=True, help="Do not keep what jobs log.")
@logs.options
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
    log_format: logs.Format,
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
        "queues": dict(map(_queue, queues)) or [DEFAULT_QUEUE],
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
    serve(target, settings, says=says, log_level=log_level, log_format=log_format)


def serve(
    target: str, settings: WorkerSettings, *, says: str, log_level: str, log_format: logs.Format
) -> None:
    """Run a worker in a process of its own until it is stopped."""
    logs.configure(log_level, log_format)
    scheduler = load_scheduler(target)
    if not scheduler.tasks:
        log.warning("%s has no tasks; import the modules that define them where it is made", target)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        if unfinished := runner.run(_work(scheduler, settings, says)):
            # Waiting for what does not end is no stop; whoever runs next rescues it.
            log.error("%d job(s) did not end; this process ends without them", unfinished)
            logging.shutdown()
            os._exit(ExitCode.FAILURE)


async def _work(scheduler: Scheduler, settings: WorkerSettings, says: str) -> int:
    """Run a worker until it is stopped and return how many of its jobs would not end."""
    with StopSignals() as signals:
        async with scheduler.worker(**settings) as running:
            log.info("working on %s: %s; stop with Ctrl-C or SIGTERM", redact(scheduler.url), says)
            signals.on_second(running.hurry)
            await _either(signals.first(), running.asked_to_stop())
    if running.lost is not None:
        raise running.lost
    return running.stats().running


async def _either(*events: Coroutine[Any, Any, None]) -> None:
    """Wait for the first of these."""
    waiting = [asyncio.ensure_future(event) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for waiter in waiting:
        waiter.cancel()


def _queue(text: str) -> tuple[str, int | None]:
    name, separator, limit = text.partition("=")
    if not separator:
        return name, None
    if not limit.isdecimal():
        raise Failure(f"--queue {text!r}: the limit must be a whole number, as in mail=5", ExitCode.USAGE)
    return name, int(limit)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event loop where it is installed."""
    if importlib.util.find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    return factory
