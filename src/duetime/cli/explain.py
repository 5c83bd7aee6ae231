"""`duetime explain`: why a job or a schedule has not run."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime

import click
import msgspec

from duetime.cli.loading import client
from duetime.cli.options import database_options, json_option, read_wall_moment
from duetime.cli.output import say_json, say_lines
from duetime.errors import JobNotFound, ScheduleNotFound
from duetime.scheduler.explanations import Explanation, ScheduleExplanation
from duetime.scheduler.scheduler import Scheduler

_JOB_ID = re.compile(r"[0-9a-f]{32}")


@click.command(short_help="Tell why a job or a schedule has not run.")
@database_options
@click.argument("subject", metavar="ID|SCHEDULE")
@click.option(
    "--at",
    type=read_wall_moment,
    metavar="MOMENT",
    help="What became of a schedule then; in its own zone unless it names one, the whole minute without seconds.",
)
@json_option
def explain(*, url: str | None, namespace: str, subject: str, at: datetime | None, as_json: bool) -> None:
    """Tell in sentences what happened to a job or a schedule, and why it has not run.

    \b
      duetime explain 0198c5a07d3e7c429a576a1f6d4f2b10
      duetime explain nightly-report
      duetime explain nightly-report --at "2026-11-15 03:00"
    """  # noqa: D301

    async def read() -> Explanation | ScheduleExplanation:
        async with client(url, namespace) as scheduler:
            return await _explain_job_or_schedule(scheduler, subject, at)

    found = asyncio.run(read())
    if as_json:
        say_json(msgspec.to_builtins(found))
    else:
        say_lines(str(found))


async def _explain_job_or_schedule(
    scheduler: Scheduler, subject: str, at: datetime | None
) -> Explanation | ScheduleExplanation:
    """Explain a job if there is one of this id, else a schedule of this name; only these have other times."""
    if at is not None or _JOB_ID.fullmatch(subject) is None:
        return await scheduler.schedules.explain(subject, at=at)
    try:
        return await scheduler.jobs.explain(subject)
    except JobNotFound as error:
        try:
            return await scheduler.schedules.explain(subject)
        except ScheduleNotFound:
            raise error from None
