"""`duetime cron`: a cron expression in words, and its next times."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from duetime.cli.options import json_option, read_moment
from duetime.cli.output import say, say_json, say_table
from duetime.cli.schedule_view import upcoming_values
from duetime.model.time import from_datetime
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.cron import cron as read_cron
from duetime.model.triggers.preview import Upcoming, preview

_MOST_TIMES = 1_000


@click.command(short_help="Say a cron expression in words and list its next times.")
@click.argument("expression")
@click.option("--tz", default="UTC", show_default=True, help="The zone of its times, by IANA name.")
@click.option(
    "--count", default=10, show_default=True, type=click.IntRange(1, _MOST_TIMES), help="How many times."
)
@click.option("--after", type=read_moment, help="List what comes after this; else from now on.")
@click.option("--name", default="", help="The schedule's name, from which H is drawn.")
@json_option
def cron(*, expression: str, tz: str, count: int, after: datetime | None, name: str, as_json: bool) -> None:
    """Say a cron expression in words and list its next times, with a note where the clock changes.

    It needs no database.

    \b
      duetime cron "*/5 9-17 * * MON-FRI" --tz Europe/Riga
      duetime cron "30 2 * * *" --tz Europe/Berlin --after 2026-03-28T00:00:00Z --count 3
      duetime cron "H 3 * * *" --name nightly
    """  # noqa: D301
    rule = read_cron(expression, tz=tz, seed=name)
    moment = datetime.now(UTC).replace(microsecond=0) if after is None else after
    found = preview(rule, after=from_datetime(moment, what="--after"), count=count)
    if as_json:
        upcoming = [upcoming_values(one) for one in found]
        say_json({"expression": expression, "tz": rule.tz, "text": rule.describe(), "upcoming": upcoming})
        return
    say(rule.describe())
    if isinstance(rule, Cron) and rule.fields.hashed and not name:
        say("H is drawn from the schedule's name; give it with --name to see its own times")
    say("")
    say_table(("LOCAL", "UTC", "NOTE"), (_time_row(one) for one in found))


def _time_row(one: Upcoming) -> tuple[str, ...]:
    return (
        f"{one.local:%a} {one.local.isoformat(' ')}",
        one.at.replace(tzinfo=None).isoformat(" "),
        one.note or "",
    )
