"""`duetime schedules preview` and `backfill`: what is to come, and what has been missed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import click
import msgspec

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.schedule_view import upcoming_row, upcoming_values
from duetime.cli.text import say, say_json, say_table
from duetime.model.instants import to_datetime
from duetime.model.triggers.preview import Upcoming
from duetime.scheduler.schedule_records import Backfill

_MOST = 1_000


@click.command()
@options.database
@click.argument("name")
@click.option("--count", default=10, show_default=True, type=click.IntRange(1, _MOST), help="How many times.")
@click.option(
    "--after", type=options.moment, metavar="MOMENT", help="What comes after this; else from now on."
)
@options.as_json
def preview(
    *, url: str | None, namespace: str, name: str, count: int, after: datetime | None, as_json: bool
) -> None:
    """List the next times of a schedule in its zone, with a note where the clock changes."""

    async def read() -> tuple[Sequence[Upcoming], datetime]:
        async with client(url, namespace) as scheduler:
            found = await scheduler.schedules.preview(name, count, after=after)
            return found, to_datetime(await scheduler.store.now())

    found, now = asyncio.run(read())
    if as_json:
        say_json([upcoming_values(one) for one in found])
    elif found:
        say_table(("NEXT", "", "NOTE"), (upcoming_row(one, now) for one in found))
    else:
        say("nothing more to come")


@click.command()
@options.database
@click.argument("name")
@click.option("--start", type=options.moment, required=True, metavar="MOMENT", help="From then on.")
@click.option("--end", type=options.moment, required=True, metavar="MOMENT", help="Up to then.")
@options.by
@options.dry_run
@options.as_json
def backfill(
    *,
    url: str | None,
    namespace: str,
    name: str,
    start: datetime,
    end: datetime,
    by: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make jobs for the occurrences of a stretch of time that have none; run twice, it makes each once.

    \b
      duetime schedules backfill nightly --start 2030-01-01T00:00:00Z --end 2030-01-08T00:00:00Z --dry-run
    """  # noqa: D301

    async def act() -> Backfill:
        async with client(url, namespace) as scheduler:
            return await scheduler.schedules.backfill(name, start, end, dry_run=dry_run, by=by)

    done = asyncio.run(act())
    if as_json:
        say_json({"schedule": name, "dry_run": dry_run, **msgspec.to_builtins(done)})
        return
    would = "would be " if dry_run else ""
    say(
        f"{name}  {done.enqueued} of {done.occurrences} occurrence(s) {would}enqueued, {done.already} had a job"
    )
