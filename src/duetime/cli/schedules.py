"""`duetime schedules`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import click

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.forecast import forecast
from duetime.cli.schedule_files import export, import_
from duetime.cli.schedule_history import history
from duetime.cli.schedule_moves import delete, pause, resume, skip, trigger
from duetime.cli.schedule_put import edit, put
from duetime.cli.schedule_times import backfill, preview
from duetime.cli.schedule_view import lack, say_schedule, schedule_row, schedule_values, upcoming_values
from duetime.cli.text import say, say_json, say_table
from duetime.model.fleet import Fleet
from duetime.model.instants import to_datetime
from duetime.model.triggers.preview import Upcoming
from duetime.scheduler.records import JobRecord
from duetime.scheduler.schedule_records import ScheduleRecord

_LAST = 5
_NEXT = 5


@click.group()
def schedules() -> None:
    """List, show, put and edit schedules, and move them between databases.

    \b
      duetime schedules list
      duetime schedules show nightly
      duetime schedules put jobs:scheduler nightly jobs.tidy days=7 --cron "0 3 * * *" --tz Europe/Riga
      duetime schedules pause nightly --reason "moving house" --until 2h
      duetime schedules forecast --days 7
      duetime schedules export --format yaml > schedules.yaml
    """  # noqa: D301


for command in (
    put,
    edit,
    pause,
    resume,
    trigger,
    skip,
    delete,
    preview,
    backfill,
    history,
    forecast,
    export,
    import_,
):
    schedules.add_command(command)


@schedules.command("list")
@options.database
@click.option("--task", help="Only schedules of this task.")
@click.option("--tag", help="Only schedules with this tag.")
@click.option(
    "--state",
    type=click.Choice(["active", "paused", "parked", "ended"]),
    help="Only schedules in this state.",
)
@options.as_json
def list_schedules(
    *, url: str | None, namespace: str, task: str | None, tag: str | None, state: str | None, as_json: bool
) -> None:
    """List schedules by name, with their next time in their own zone."""

    async def read() -> tuple[list[ScheduleRecord], Fleet, datetime]:
        async with client(url, namespace) as scheduler:
            fleet = Fleet.of(await scheduler.store.workers())
            return await scheduler.schedules.list(), fleet, to_datetime(await scheduler.store.now())

    known, fleet, now = asyncio.run(read())
    found = [
        schedule
        for schedule in known
        if task in (None, schedule.task)
        and state in (None, schedule.state)
        and (tag is None or tag in schedule.tags)
    ]
    if as_json:
        say_json([schedule_values(schedule, fleet) for schedule in found])
        return
    if found:
        head = ("NAME", "STATE", "NEXT", "TASK", "WHEN")
        say_table(head, (schedule_row(schedule, fleet, now) for schedule in found))
    else:
        say("no schedules")
    if found and (hint := lack(fleet)) is not None:
        say(hint, err=True)


@schedules.command()
@options.database
@click.argument("name")
@options.as_json
def show(*, url: str | None, namespace: str, name: str, as_json: bool) -> None:
    """Show all that is known about a schedule, its last records and its next times."""

    async def read() -> tuple[ScheduleRecord, Fleet, list[JobRecord], Sequence[Upcoming], datetime]:
        async with client(url, namespace) as scheduler:
            schedule = await scheduler.schedules.get(name)
            return (
                schedule,
                Fleet.of(await scheduler.store.workers()),
                await scheduler.jobs.list(schedule=name, limit=_LAST),
                await scheduler.schedules.preview(name, _NEXT),
                to_datetime(await scheduler.store.now()),
            )

    schedule, fleet, last, upcoming, now = asyncio.run(read())
    if not as_json:
        say_schedule(schedule, fleet, last, upcoming, now=now)
        return
    records = [
        {
            "id": job.id,
            "state": job.state,
            "occurrence": None if job.occurrence is None else job.occurrence.isoformat(),
            "occurrences": job.occurrences,
            "reason": job.reason,
            "error": job.error,
        }
        for job in last
    ]
    say_json(
        schedule_values(schedule, fleet)
        | {"last": records, "upcoming": [upcoming_values(one) for one in upcoming]}
    )
