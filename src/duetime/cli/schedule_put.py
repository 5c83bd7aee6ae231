"""`duetime schedules put`."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, cast, get_args

import click

from duetime.cli import options
from duetime.cli.loading import known_task, load_scheduler
from duetime.cli.schedule_view import told
from duetime.cli.text import say, say_json
from duetime.model.instants import to_datetime
from duetime.model.portable_triggers import read_trigger
from duetime.model.schedule import Misfire, Overlap
from duetime.model.schedule_options import ScheduleOptionValues
from duetime.scheduler import ScheduleRecord
from duetime.scheduler.arguments import read_arguments


@click.command()
@click.argument("target", metavar="MODULE:OBJECT")
@click.argument("name")
@click.argument("task")
@click.argument("arguments", nargs=-1)
@click.option("--cron", metavar="EXPRESSION", help="By a cron expression, such as '0 3 * * MON-FRI'.")
@click.option("--every", metavar="DURATION", help="At equal intervals, such as 15m.")
@click.option("--at", type=options.moment, multiple=True, metavar="MOMENT", help="Then; may be repeated.")
@click.option("--rrule", metavar="RULE", help="By a rule of RFC 5545, such as 'FREQ=MONTHLY;BYDAY=-1FR'.")
@click.option(
    "--tz", metavar="ZONE", help="The zone of --cron or --rrule, such as Europe/Riga.  [default: UTC]"
)
@click.option("--start", type=options.moment, metavar="MOMENT", help="Where --every or --rrule counts from.")
@click.option("--end", type=options.moment, metavar="MOMENT", help="When it ends.")
@click.option("--times", type=int, metavar="N", help="How many jobs it makes at most.")
@click.option(
    "--jitter",
    type=options.duration,
    metavar="DURATION",
    help="Put each job off by its own amount, up to this.",
)
@click.option("--overlap", type=click.Choice(get_args(Overlap)), help="When the one before has not ended.")
@click.option("--overlap-limit", type=int, metavar="N", help="How many may wait with queue_all.")
@click.option("--misfire", type=click.Choice(get_args(Misfire)), help="What runs of what was missed.")
@click.option(
    "--misfire-window", type=options.duration, metavar="DURATION", help="How late one may still run."
)
@click.option("--misfire-limit", type=int, metavar="N", help="How many of those missed run with all.")
@click.option("--pause-after", type=int, metavar="N", help="Pause it after so many failures in a row.")
@click.option("--queue", metavar="NAME", help="In place of the task's own.")
@click.option("--priority", type=int, metavar="N", help="From 0 (first) to 9, in place of the task's own.")
@click.option("--retries", type=int, metavar="N", help="In place of the task's own.")
@click.option("--timeout", type=options.duration, metavar="DURATION", help="In place of the task's own.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Mark its jobs; may be repeated.")
@options.by
@options.as_json
def put(
    *,
    target: str,
    name: str,
    task: str,
    arguments: tuple[str, ...],
    cron: str | None,
    every: str | None,
    at: tuple[datetime, ...],
    rrule: str | None,
    tz: str | None,
    start: datetime | None,
    end: datetime | None,
    times: int | None,
    jitter: timedelta | None,
    by: str | None,
    as_json: bool,
    **policies: Any,
) -> None:
    """Store a schedule that calls TASK, or change the one of this name.

    ARGUMENTS are name=value pairs, read as the type of the parameter, or one JSON object or array. Give one of
    --cron, --every, --at and --rrule. Nothing is stored when anything is refused.

    \b
      duetime schedules put jobs:scheduler nightly jobs.tidy days=7 --cron "0 3 * * *" --tz Europe/Riga
      duetime schedules put jobs:scheduler rates jobs.fetch --every 15m --overlap queue_one --tag money
    """  # noqa: D301
    scheduler = load_scheduler(target)
    handler = known_task(scheduler, task)
    when = {"cron": cron, "every": every, "at": list(at) or None, "rrule": rrule, "tz": tz}
    bounds = {"start": start, "end": end, "times": times, "jitter": jitter}
    trigger = read_trigger(when | bounds, name=name)
    call = read_arguments(handler, arguments)
    given = {option: value for option, value in policies.items() if value not in (None, ())}
    values = cast("ScheduleOptionValues", given)

    async def act() -> tuple[str, ScheduleRecord, datetime]:
        async with scheduler:
            answer = await scheduler.schedules.put(
                name, trigger, task, args=tuple(call.args), kwargs=call.kwargs, by=by, **values
            )
            return answer, await scheduler.schedules.get(name), to_datetime(await scheduler.store.now())

    answer, schedule, now = asyncio.run(act())
    if as_json:
        next_at = None if schedule.next_at is None else schedule.next_at.isoformat()
        say_json({"schedule": name, "answer": answer, "when": schedule.description, "next_at": next_at})
        return
    say(f"{name}  {answer}: {schedule.description}")
    if schedule.next_at is not None:
        say(f"next: {told(schedule.next_at, now)}")
