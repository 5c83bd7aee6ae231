"""`duetime explain`."""

from __future__ import annotations

import asyncio

import click
import msgspec

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.text import say_json, say_lines
from duetime.scheduler.explaining import Explanation


@click.command(short_help="Tell what happened to a job and why it has not run yet.")
@options.database
@click.argument("job_id", metavar="ID")
@options.as_json
def explain(*, url: str | None, namespace: str, job_id: str, as_json: bool) -> None:
    """Tell in sentences what happened to a job, and why it has not run or ended yet.

    \b
      duetime explain 0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10
    """  # noqa: D301

    async def read() -> Explanation:
        async with client(url, namespace) as scheduler:
            return await scheduler.jobs.explain(job_id)

    found = asyncio.run(read())
    if as_json:
        say_json(msgspec.to_builtins(found))
    else:
        say_lines(str(found))
