"""`duetime schedules put` and `edit`."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.failures import ExitCode, Failure
from duetime.cli.loading import known_task, load_scheduler
from duetime.cli.schedule_moves import needs_code
from duetime.cli.schedule_options import split, when_and_policies
from duetime.cli.schedule_view import told
from duetime.cli.text import say, say_json
from duetime.model.instants import to_datetime
from duetime.model.portable_triggers import read_trigger
from duetime.scheduler.arguments import read_arguments
from duetime.scheduler.scheduler import Scheduler


@click.command()
@click.argument("target", metavar="MODULE:OBJECT")
@click.argument("name")
@click.argument("task")
@click.argument("arguments", nargs=-1)
@when_and_policies
@options.by
@options.as_json
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
    when, policies = split(given)
    trigger = read_trigger(when, name=name)
    call = read_arguments(handler, arguments)

    async def act() -> None:
        async with scheduler:
            answer = await scheduler.schedules.put(
                name, trigger, task, args=tuple(call.args), kwargs=call.kwargs, by=by, **policies
            )
            await _tell(scheduler, name, answer, as_json=as_json)

    asyncio.run(act())


@click.command()
@options.database
@click.argument("name")
@click.argument("arguments", nargs=-1)
@when_and_policies
@options.app
@options.by
@options.as_json
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
    needs_code(arguments, app)
    scheduler = client(url, namespace) if app is None else load_scheduler(app)
    when, values = split(given)
    changes: dict[str, Any] = dict(values)
    if not (when or values or arguments):
        raise Failure("say what to change, such as --queue slow", ExitCode.USAGE)
    if when:
        changes["trigger"] = read_trigger(when, name=name)

    async def act() -> None:
        async with scheduler:
            if arguments:
                task = (await scheduler.schedules.get(name)).task
                call = read_arguments(known_task(scheduler, task), arguments)
                changes.update(args=tuple(call.args), kwargs=call.kwargs)
            answer = await scheduler.schedules.edit(name, by=by, **changes)
            await _tell(scheduler, name, answer, as_json=as_json)

    asyncio.run(act())


async def _tell(scheduler: Scheduler, name: str, answer: str, *, as_json: bool) -> None:
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
        say(f"next: {told(following, now)}")
    if schedule.searched_until is not None:
        say(f"next: none found up to {told(schedule.searched_until, now)}, when the search goes on")
