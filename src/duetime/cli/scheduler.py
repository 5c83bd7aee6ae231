"""`duetime scheduler`."""

from __future__ import annotations

import click

from duetime.cli import logs
from duetime.cli.worker import serve


@click.command(short_help="Fire schedules, and leave jobs to workers.")
@click.argument("target", metavar="MODULE:OBJECT")
@logs.options
def scheduler(*, target: str, log_level: str, log_format: logs.Format) -> None:
    """Fire schedules until stopped, and run no jobs.

    Workers fire schedules, too, unless they are started with --no-schedules; any number of processes may do so, and
    each occurrence still makes one job. This one is for those who want them apart: it stores the schedules of the
    code, makes their jobs when they are due, and takes over what dead workers have left.

    \b
      duetime scheduler jobs:scheduler
      duetime worker jobs:scheduler --no-schedules
    """  # noqa: D301
    serve(
        target,
        {"jobs": False, "dedicated": True},
        says="firing schedules and running no jobs",
        log_level=log_level,
        log_format=log_format,
    )
