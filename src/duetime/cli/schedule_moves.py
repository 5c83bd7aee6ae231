"""`duetime schedules pause`, `resume` and `delete`: what is done to schedules that are there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

import click

from duetime.cli import options
from duetime.cli.confirming import confirm
from duetime.cli.database import client
from duetime.cli.failures import ExitCode
from duetime.cli.text import say, say_json
from duetime.errors import ScheduleNotFound
from duetime.scheduler import Scheduler

Act: TypeAlias = Callable[[Scheduler, str], Awaitable[str]]

_UNKNOWN = "there is no such schedule"


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
        await scheduler.schedules.resume(name, by=by)
        return "resumed"

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
            say(f"{name}  {_UNKNOWN if answer == 'unknown' else answer}")
    if "unknown" in answers.values():
        raise click.exceptions.Exit(ExitCode.NOT_FOUND)
