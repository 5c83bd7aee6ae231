"""`duetime prune`."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import click

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.text import say, say_json
from duetime.model.retention import DEFAULT_KEEP_PER_SCHEDULE


@click.command(short_help="Remove the records of old jobs.")
@options.database
@click.option(
    "--older-than",
    type=options.duration,
    required=True,
    metavar="DURATION",
    help="How long ago they must have ended, such as 30d.",
)
@click.option(
    "--keep-per-schedule",
    type=int,
    default=DEFAULT_KEEP_PER_SCHEDULE,
    show_default=True,
    help="How many of the latest jobs of each schedule stay in any case.",
)
@click.option("--dry-run", is_flag=True, help="Only count what would go.")
@options.as_json
def prune(
    *,
    url: str | None,
    namespace: str,
    older_than: timedelta,
    keep_per_schedule: int,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove the records of jobs that ended long ago, and say how many there were.

    Workers do the same by themselves after 30 days, unless told otherwise. What has not ended is never removed.

    \b
      duetime prune --older-than 30d --dry-run
      duetime prune --older-than 12h
    """  # noqa: D301

    async def run() -> int:
        async with client(url, namespace) as scheduler:
            return await scheduler.prune(
                older_than=older_than, keep_per_schedule=keep_per_schedule, dry_run=dry_run
            )

    removed = asyncio.run(run())
    if as_json:
        say_json({"jobs": removed, "dry_run": dry_run})
    else:
        jobs = "1 job" if removed == 1 else f"{removed} jobs"
        say(f"{'would remove' if dry_run else 'removed'} {jobs}")
