"""What `duetime schedules put` and `edit` take alike: when a schedule runs, and by which policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

import click

from duetime.cli import options
from duetime.model.schedule import Misfire, Overlap
from duetime.model.schedule_options import ScheduleOptionValues

_WHEN = (
    click.option("--cron", metavar="EXPRESSION", help="By a cron expression, such as '0 3 * * MON-FRI'."),
    click.option("--every", metavar="DURATION", help="At equal intervals, such as 15m or '1 month'."),
    click.option("--at", type=options.moment, multiple=True, metavar="MOMENT", help="Then; may be repeated."),
    click.option("--rrule", metavar="RULE", help="By a rule of RFC 5545, such as 'FREQ=MONTHLY;BYDAY=-1FR'."),
    click.option(
        "--tz",
        metavar="ZONE",
        help="The zone of --cron, --rrule and months, such as Europe/Riga.  [default: UTC]",
    ),
    click.option(
        "--start",
        type=options.moment,
        metavar="MOMENT",
        help="When it begins; --every and --rrule count from it.",
    ),
    click.option("--end", type=options.moment, metavar="MOMENT", help="When it ends."),
    click.option("--times", type=click.IntRange(1), metavar="N", help="How many jobs it makes at most."),
    click.option(
        "--jitter",
        type=options.duration,
        metavar="DURATION",
        help="Put each job off by its own amount, up to this.",
    ),
)
_TIMES = ("cron", "every", "at", "rrule", "tz", "start", "end", "times", "jitter")

_POLICIES = (
    click.option(
        "--overlap", type=click.Choice(get_args(Overlap)), help="When the one before has not ended."
    ),
    click.option("--overlap-limit", type=int, metavar="N", help="How many may wait with queue_all."),
    click.option("--misfire", type=click.Choice(get_args(Misfire)), help="What runs of what was missed."),
    click.option(
        "--misfire-window", type=options.duration, metavar="DURATION", help="How late one may still run."
    ),
    click.option("--misfire-limit", type=int, metavar="N", help="How many of those missed run with all."),
    click.option("--pause-after", type=int, metavar="N", help="Pause it after so many failures in a row."),
    click.option("--queue", metavar="NAME", help="In place of the task's own."),
    click.option(
        "--priority", type=int, metavar="N", help="From 0 (first) to 9, in place of the task's own."
    ),
    click.option("--retries", type=int, metavar="N", help="In place of the task's own."),
    click.option("--timeout", type=options.duration, metavar="DURATION", help="In place of the task's own."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Mark its jobs; may be repeated."),
)


def when_and_policies(command: options.F) -> options.F:
    """Add the options that make up a schedule."""
    for option in reversed((*_WHEN, *_POLICIES)):
        command = option(command)
    return command


def split(given: Mapping[str, Any]) -> tuple[dict[str, Any], ScheduleOptionValues]:
    """Return what was said about time, and the policies that were named; what was not given is left out."""
    said = {name: value for name, value in given.items() if value not in (None, ())}
    when = {name: said.pop(name) for name in _TIMES if name in said}
    if "at" in when:
        when["at"] = list(when["at"])
    return when, cast("ScheduleOptionValues", said)
