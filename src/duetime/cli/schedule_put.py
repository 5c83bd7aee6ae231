"""`duetime schedules put` and `edit`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast, get_args

import click

from duetime.cli.loading import check_arguments_need_code, client, known_task, load_scheduler
from duetime.cli.options import (
    F,
    app_option,
    by_option,
    database_options,
    json_option,
    read_duration,
    read_moment,
)
from duetime.cli.output import CommandFailure, ExitCode, say, say_json
from duetime.cli.schedule_view import moment_text
from duetime.model.schedule.files import read_trigger
from duetime.model.schedule.options import ScheduleOptionValues
from duetime.model.schedule.record import Misfire, Overlap
from duetime.model.time import to_datetime
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.task import read_arguments

_TIME_OPTIONS = (
    click.option("--cron", metavar="EXPRESSION", help="By a cron expression, such as '0 3 * * MON-FRI'."),
    click.option("--every", metavar="DURATION", help="At equal intervals, such as 15m or '1 month'."),
    click.option("--at", type=read_moment, multiple=True, metavar="MOMENT", help="Then; may be repeated."),
    click.option("--rrule", metavar="RULE", help="By a rule of RFC 5545, such as 'FREQ=MONTHLY;BYDAY=-1FR'."),
    click.option(
        "--tz",
        metavar="ZONE",
        help="The zone of --cron, --rrule and months, such as Europe/Riga.  [default: UTC]",
    ),
    click.option(
        "--start",
        type=read_moment,
        metavar="MOMENT",
        help="When it begins; --every and --rrule count from it.",
    ),
    click.option("--end", type=read_moment, metavar="MOMENT", help="When it ends."),
    click.option("--times", type=click.IntRange(1), metavar="N", help="How many jobs it makes at most."),
    click.option(
        "--jitter",
        type=read_duration,
        metavar="DURATION",
        help="Put each job off by its own amount, up to this.",
    ),
)
_TIME_OPTION_NAMES = ("cron", "every", "at", "rrule", "tz", "start", "end", "times", "jitter")

_POLICY_OPTIONS = (
    click.option(
        "--overlap", type=click.Choice(get_args(Overlap)), help="When the one before has not ended."
    ),
    click.option("--overlap-limit", type=int, metavar="N", help="How many may wait with queue_all."),
    click.option("--misfire", type=click.Choice(get_args(Misfire)), help="What runs of what was missed."),
    click.option(
        "--misfire-window", type=read_duration, metavar="DURATION", help="How late one may still run."
    ),
    click.option("--misfire-limit", type=int, metavar="N", help="How many of those missed run with all."),
    click.option("--pause-after", type=int, metavar="N", help="Pause it after so many failures in a row."),
    click.option("--queue", metavar="NAME", help="In place of the task's own."),
    click.option(
        "--priority", type=int, metavar="N", help="From 0 (first) to 9, in place of the task's own."
    ),
    click.option("--retries", type=int, metavar="N", help="In place of the task's own."),
    click.option("--timeout", type=read_duration, metavar="DURATION", help="In place of the task's own."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Mark its jobs; may be repeated."),
)


def definition_options(command: F) -> F:
    """Add the options that make up a schedule."""
    for option in reversed((*_TIME_OPTIONS, *_POLICY_OPTIONS)):
        command = option(command)
    return command


def split_definition(given: Mapping[str, Any]) -> tuple[dict[str, Any], ScheduleOptionValues]:
    """Return what was said about time, and the policies that were named; what was not given is left out."""
    said = {name: value for name, value in given.items() if value not in (None, ())}
    when = {name: said.pop(name) for name in _TIME_OPTION_NAMES if name in said}
    if "at" in when:
        when["at"] = list(when["at"])
    return when, cast("ScheduleOptionValues", said)


@click.command()
@click.argument("target", metavar="MODULE:OBJECT")
@click.argument("name")
@click.argument("task")
@click.argument("arguments", nargs=-1)
@definition_options
@by_option
@json_option
def put(
    *,
    target: str,
    name: str,
    task: str,
    arguments: tuple[str, ...],
    by: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Store a schedule that calls TASK, in place of the one of this name if there is one.

    All of it is replaced: arguments and options that are not given are as for a new schedule. To change some and keep
    the others, use `duetime schedules edit`.

    ARGUMENTS are name=value pairs, read as the type of the parameter, or one JSON object or array. Give one of
    --cron, --every, --at and --rrule. Nothing is stored when anything is refused.

    \b
      duetime schedules put jobs:scheduler nightly jobs.tidy days=7 --cron "0 3 * * *" --tz Europe/Riga
      duetime schedules put jobs:scheduler rates jobs.fetch --every 15m --overlap queue_one --tag money
    """  # noqa: D301
    scheduler = load_scheduler(target)
    handler = known_task(scheduler, task)
    when, policies = split_definition(given)
    trigger = read_trigger(when, name=name)
    call = read_arguments(handler, arguments)

    async def act() -> None:
        async with scheduler:
            answer = await scheduler.schedules.put(
                name, trigger, task, args=tuple(call.args), kwargs=call.kwargs, by=by, **policies
            )
            await _say_outcome(scheduler, name, answer, as_json=as_json)

    asyncio.run(act())


@click.command()
@database_options
@click.argument("name")
@click.argument("arguments", nargs=-1)
@definition_options
@app_option
@by_option
@json_option
def edit(
    *,
    url: str | None,
    namespace: str,
    name: str,
    arguments: tuple[str, ...],
    app: str | None,
    by: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Change what is given of a schedule, and nothing else.

    ARGUMENTS take the place of the schedule's own: name=value pairs, or one JSON object or array. They are checked
    by the task, so they need --app. What is said about time is the whole of it: --cron "0 4 * * *" without --tz
    means UTC. Tags take the place of those before. Nothing is changed when anything is refused.

    \b
      duetime schedules edit nightly --cron "0 4 * * *" --tz Europe/Riga
      duetime schedules edit nightly --queue slow --retries 5
      duetime schedules edit nightly days=30 --app jobs:scheduler
    """  # noqa: D301
    check_arguments_need_code(arguments, app)
    scheduler = client(url, namespace) if app is None else load_scheduler(app)
    when, values = split_definition(given)
    changes: dict[str, Any] = dict(values)
    if not (when or values or arguments):
        raise CommandFailure("say what to change, such as --queue slow", ExitCode.USAGE)
    if when:
        changes["trigger"] = read_trigger(when, name=name)

    async def act() -> None:
        async with scheduler:
            if arguments:
                task = (await scheduler.schedules.get(name)).task
                call = read_arguments(known_task(scheduler, task), arguments)
                changes.update(args=tuple(call.args), kwargs=call.kwargs)
            answer = await scheduler.schedules.edit(name, by=by, **changes)
            await _say_outcome(scheduler, name, answer, as_json=as_json)

    asyncio.run(act())


async def _say_outcome(scheduler: Scheduler, name: str, answer: str, *, as_json: bool) -> None:
    """Say what came of it, and when the schedule runs next."""
    schedule = await scheduler.schedules.get(name)
    following = schedule.next_at
    if as_json:
        next_at = None if following is None else following.isoformat()
        say_json({"schedule": name, "answer": answer, "when": schedule.description, "next_at": next_at})
        return
    say(f"{name}  {answer}: {schedule.description}")
    now = to_datetime(await scheduler.store.now())
    if following is not None and not schedule.paused:
        say(f"next: {moment_text(following, now)}")
    if schedule.searched_until is not None:
        say(f"next: none found up to {moment_text(schedule.searched_until, now)}, when the search goes on")
