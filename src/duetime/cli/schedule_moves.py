"""`duetime schedules pause`, `resume`, `trigger`, `skip` and `delete`: what is done to schedules that are there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias
from zoneinfo import ZoneInfo

import click

from duetime.cli import options
from duetime.cli.confirming import confirm
from duetime.cli.database import client
from duetime.cli.failures import ExitCode, Failure
from duetime.cli.loading import known_task, load_scheduler
from duetime.cli.schedule_view import told
from duetime.cli.text import say, say_json
from duetime.errors import ScheduleNotFound
from duetime.model.instants import to_datetime
from duetime.scheduler.arguments import read_arguments
from duetime.scheduler.scheduler import Scheduler

Act: TypeAlias = Callable[[Scheduler, str], Awaitable[str]]

_TEXTS = {
    "unknown": "there is no such schedule",
    "unchanged": "was not paused",
    "parked": "is parked, since no code declares it; put it, or start a worker with code that declares it",
}


@click.command()
@options.database
@options.schedule_names
@click.option("--reason", help="Kept with the schedule, for others to read.")
@click.option(
    "--until",
    type=options.moment_or_duration,
    metavar="WHEN",
    help="Go on by itself then: in 2h, or at 2030-01-31T09:00:00Z.",
)
@options.by
@options.as_json
def pause(
    *,
    url: str | None,
    namespace: str,
    names: tuple[str, ...],
    reason: str | None,
    until: datetime | timedelta | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Stop schedules from firing; what they have made and not started is taken back.

    `-` reads names from standard input. Exits with 3 when a schedule does not exist.
    """

    async def act(scheduler: Scheduler, name: str) -> str:
        await scheduler.schedules.pause(name, reason=reason, until=until, by=by)
        return "paused"

    _tell(asyncio.run(_each(url, namespace, names, act)), as_json=as_json)


@click.command()
@options.database
@options.schedule_names
@options.by
@options.as_json
def resume(*, url: str | None, namespace: str, names: tuple[str, ...], by: str | None, as_json: bool) -> None:
    """Let paused schedules fire again, from now on; one record tells what has not run meanwhile.

    `-` reads names from standard input. Exits with 3 when a schedule does not exist.
    """

    async def act(scheduler: Scheduler, name: str) -> str:
        answer = await scheduler.schedules.resume(name, by=by)
        return "parked" if (await scheduler.schedules.get(name)).parked_at is not None else answer

    _tell(asyncio.run(_each(url, namespace, names, act)), as_json=as_json)


@click.command()
@options.database
@options.schedule_names
@click.option("--yes", is_flag=True, help="Do it without asking.")
@options.by
@options.dry_run
@options.as_json
def delete(
    *,
    url: str | None,
    namespace: str,
    names: tuple[str, ...],
    yes: bool,
    by: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove schedules, and take back what they have made and not started; their records stay.

    One that code declares comes back when a worker with that code starts. On a terminal the name is asked for, or
    how many there are; elsewhere --yes is needed. `-` reads names from standard input. Exits with 3 when a schedule
    does not exist.
    """
    if not (yes or dry_run):
        what = "name of the schedule" if len(names) == 1 else "number of schedules"
        confirm(names[0] if len(names) == 1 else str(len(names)), what=what, done="deleted")

    async def act(scheduler: Scheduler, name: str) -> str:
        if dry_run:
            await scheduler.schedules.get(name)
            return "would be deleted"
        await scheduler.schedules.delete(name, by=by)
        return "deleted"

    _tell(asyncio.run(_each(url, namespace, names, act)), as_json=as_json)


@click.command()
@options.database
@click.argument("name")
@click.argument("arguments", nargs=-1)
@options.app
@options.by
@options.as_json
def trigger(
    *,
    url: str | None,
    namespace: str,
    name: str,
    arguments: tuple[str, ...],
    app: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Make a job of a schedule now, without moving the schedule, and print its id.

    ARGUMENTS take the place of the schedule's own: name=value pairs, or one JSON object or array. They are checked
    by the task, so they need --app.

    \b
      duetime schedules trigger nightly
      duetime schedules trigger nightly days=30 --app jobs:scheduler
    """  # noqa: D301
    needs_code(arguments, app)
    scheduler = client(url, namespace) if app is None else load_scheduler(app)

    async def act() -> str:
        async with scheduler:
            if not arguments:
                return (await scheduler.schedules.trigger(name, by=by)).id
            task = (await scheduler.schedules.get(name)).task
            call = read_arguments(known_task(scheduler, task), arguments)
            args = tuple(call.args)
            return (await scheduler.schedules.trigger(name, args=args, kwargs=call.kwargs, by=by)).id

    job_id = asyncio.run(act())
    if as_json:
        say_json({"schedule": name, "id": job_id})
    else:
        say(job_id)


@click.command()
@options.database
@click.argument("name")
@options.by
@options.as_json
def skip(*, url: str | None, namespace: str, name: str, by: str | None, as_json: bool) -> None:
    """Leave out the next occurrence; a record tells who did.

    Exits with 1 when there is none: the schedule is paused, parked or over.
    """

    async def act() -> tuple[datetime, datetime]:
        async with client(url, namespace) as scheduler:
            zone = ZoneInfo((await scheduler.schedules.get(name)).trigger.tz)
            moment = (await scheduler.schedules.skip(name, by=by)).astimezone(zone)
            return moment, to_datetime(await scheduler.store.now())

    moment, now = asyncio.run(act())
    if as_json:
        say_json({"schedule": name, "skipped": moment.isoformat()})
    else:
        say(f"{name}  {told(moment, now)} is left out")


def needs_code(arguments: tuple[str, ...], app: str | None) -> None:
    """Refuse arguments that no code is there to check."""
    if arguments and app is None:
        text = "other arguments are checked by the code of the task; say --app MODULE:OBJECT"
        raise Failure(text, ExitCode.USAGE)


async def _each(url: str | None, namespace: str, names: Iterable[str], act: Act) -> dict[str, str]:
    """Do something to each schedule, and go on when one is not there."""
    answers: dict[str, str] = {}
    async with client(url, namespace) as scheduler:
        for name in names:
            try:
                answers[name] = await act(scheduler, name)
            except ScheduleNotFound:
                answers[name] = "unknown"
    return answers


def _tell(answers: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        say_json(answers)
    else:
        for name, answer in answers.items():
            say(f"{name}  {_TEXTS.get(answer, answer)}")
    if "unknown" in answers.values():
        raise click.exceptions.Exit(ExitCode.NOT_FOUND)
