"""`duetime schedules forecast`."""

from __future__ import annotations

import asyncio

import click
import msgspec

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.text import say_json, say_lines
from duetime.scheduler.forecast_records import Forecast
from duetime.scheduler.forecasting import MOST_DAYS


@click.command(short_help="Show the load to come.")
@options.database
@click.option(
    "--days", type=click.IntRange(1, MOST_DAYS), default=7, show_default=True, help="How far to look ahead."
)
@click.option("--tz", default="UTC", show_default=True, help="The zone to show times in.")
@options.as_json
def forecast(*, url: str | None, namespace: str, days: int, tz: str, as_json: bool) -> None:
    """Show how many jobs the schedules will make, hour by hour, and which of them start together.

    \b
      duetime schedules forecast --days 7 --tz Europe/Riga
    """  # noqa: D301

    async def read() -> Forecast:
        async with client(url, namespace) as scheduler:
            return await scheduler.schedules.forecast(days=days, tz=tz)

    found = asyncio.run(read())
    if as_json:
        say_json(msgspec.to_builtins(found))
    else:
        say_lines(str(found))
