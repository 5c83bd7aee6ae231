"""`duetime schedules`: list and show schedules, their past and what is to come, pause, trigger, delete them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import click
import msgspec

from duetime.cli.loading import check_arguments_need_code, client, known_task, load_scheduler
from duetime.cli.options import (
    app_option,
    by_option,
    database_options,
    dry_run_option,
    json_option,
    read_moment,
    read_moment_or_duration,
    schedule_names_argument,
)
from duetime.cli.output import (
    ExitCode,
    confirm,
    relative_time,
    say,
    say_json,
    say_lines,
    say_table,
    shortened,
)
from duetime.cli.schedule_files import export, import_
from duetime.cli.schedule_put import edit, put
from duetime.cli.schedule_view import (
    missing_workers,
    moment_text,
    say_schedule,
    schedule_row,
    schedule_values,
    upcoming_row,
    upcoming_values,
)
from duetime.errors import ScheduleNotFound
from duetime.model.stored import LiveWorkers
from duetime.model.time import describe_duration, to_datetime
from duetime.model.triggers.preview import Upcoming
from duetime.scheduler.forecast import MAX_DAYS, Forecast
from duetime.scheduler.records import JobRecord
from duetime.scheduler.schedule_records import Backfill, ScheduleChange, ScheduleRecord
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.task import read_arguments

ScheduleAction: TypeAlias = Callable[[Scheduler, str], Awaitable[str]]

_ANSWER_TEXTS = {
    "unknown": "there is no such schedule",
    "unchanged": "was not paused",
    "parked": "is parked, since no code declares it; put it, or start a worker with code that declares it",
}


@click.command()
@database_options
@schedule_names_argument
@click.option("--reason", help="Kept with the schedule, for others to read.")
@click.option(
    "--until",
    type=read_moment_or_duration,
    metavar="WHEN",
    help="Go on by itself then: in 2h, or at 2030-01-31T09:00:00Z.",
)
@by_option
@json_option
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

    _say_answers(asyncio.run(_answer_for_each(url, namespace, names, act)), as_json=as_json)


@click.command()
@database_options
@schedule_names_argument
@by_option
@json_option
def resume(*, url: str | None, namespace: str, names: tuple[str, ...], by: str | None, as_json: bool) -> None:
    """Let paused schedules fire again, from now on; one record tells what has not run meanwhile.

    `-` reads names from standard input. Exits with 3 when a schedule does not exist.
    """

    async def act(scheduler: Scheduler, name: str) -> str:
        answer = await scheduler.schedules.resume(name, by=by)
        return "parked" if (await scheduler.schedules.get(name)).parked_at is not None else answer

    _say_answers(asyncio.run(_answer_for_each(url, namespace, names, act)), as_json=as_json)


@click.command()
@database_options
@schedule_names_argument
@click.option("--yes", is_flag=True, help="Do it without asking.")
@by_option
@dry_run_option
@json_option
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

    _say_answers(asyncio.run(_answer_for_each(url, namespace, names, act)), as_json=as_json)


@click.command()
@database_options
@click.argument("name")
@click.argument("arguments", nargs=-1)
@app_option
@by_option
@json_option
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
    check_arguments_need_code(arguments, app)
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
@database_options
@click.argument("name")
@by_option
@json_option
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
        say(f"{name}  {moment_text(moment, now)} is left out")


async def _answer_for_each(
    url: str | None, namespace: str, names: Iterable[str], act: ScheduleAction
) -> dict[str, str]:
    """Do something to each schedule, and go on when one is not there."""
    answers: dict[str, str] = {}
    async with client(url, namespace) as scheduler:
        for name in names:
            try:
                answers[name] = await act(scheduler, name)
            except ScheduleNotFound:
                answers[name] = "unknown"
    return answers


def _say_answers(answers: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        say_json(answers)
    else:
        for name, answer in answers.items():
            say(f"{name}  {_ANSWER_TEXTS.get(answer, answer)}")
    if "unknown" in answers.values():
        raise click.exceptions.Exit(ExitCode.NOT_FOUND)


_MOST_TIMES = 1_000


@click.command()
@database_options
@click.argument("name")
@click.option(
    "--count", default=10, show_default=True, type=click.IntRange(1, _MOST_TIMES), help="How many times."
)
@click.option("--after", type=read_moment, metavar="MOMENT", help="What comes after this; else from now on.")
@json_option
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
@database_options
@click.argument("name")
@click.option("--start", type=read_moment, required=True, metavar="MOMENT", help="From then on.")
@click.option("--end", type=read_moment, required=True, metavar="MOMENT", help="Up to then.")
@by_option
@dry_run_option
@json_option
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


@click.command(short_help="Show the load to come.")
@database_options
@click.option(
    "--days", type=click.IntRange(1, MAX_DAYS), default=7, show_default=True, help="How far to look ahead."
)
@click.option("--tz", default="UTC", show_default=True, help="The zone to show times in.")
@json_option
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


_MOST_CHANGES = 1_000
_DETAIL_WIDTH = 200
"""How much of a reason or of arguments is shown in a table."""


@click.command()
@database_options
@click.argument("name")
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1, _MOST_CHANGES), help="At most so many."
)
@json_option
def history(*, url: str | None, namespace: str, name: str, limit: int, as_json: bool) -> None:
    """List what was done to a schedule, newest first: when, by whom, and what has changed."""

    async def read() -> tuple[Sequence[ScheduleChange], datetime]:
        async with client(url, namespace) as scheduler:
            return await scheduler.schedules.history(name, limit=limit), to_datetime(
                await scheduler.store.now()
            )

    found, now = asyncio.run(read())
    if as_json:
        say_json([_change_values(change) for change in found])
    elif found:
        say_table(("WHEN", "", "WHO", "WHAT", "DETAIL"), (_change_row(change, now) for change in found))
    else:
        say("nothing was done to it")


def _change_row(change: ScheduleChange, now: datetime) -> tuple[str, ...]:
    at = change.at.isoformat(" ", timespec="seconds")
    detail = ", ".join(f"{name}: {_detail_text(value)}" for name, value in change.detail.items())
    return at, relative_time(change.at, now), change.who, change.verb, detail


def _change_values(change: ScheduleChange) -> object:
    """Return a change as JSON values, lengths of time in seconds."""
    detail = {name: _json_value(value) for name, value in change.detail.items()}
    return msgspec.to_builtins(replace(change, detail=detail))


def _json_value(value: Any) -> Any:
    match value:
        case [before, after]:
            return [_json_value(before), _json_value(after)]
        case timedelta():
            return value.total_seconds()
        case _:
            return value


def _detail_text(value: Any) -> str:
    """Say what a field was and is, or what was said."""
    match value:
        case [before, after]:
            return f"{_value_text(before)} → {_value_text(after)}"
        case _:
            return _value_text(value)


def _value_text(value: Any) -> str:
    match value:
        case None:
            return "none"
        case str():
            return shortened(value, _DETAIL_WIDTH)
        case datetime():
            return value.isoformat(" ")
        case timedelta():
            return describe_duration(value // timedelta(microseconds=1))
        case _:
            return shortened(msgspec.json.encode(value).decode(), _DETAIL_WIDTH)


_RECORDS_SHOWN = 5
_TIMES_SHOWN = 5


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
@database_options
@click.option("--task", help="Only schedules of this task.")
@click.option("--tag", help="Only schedules with this tag.")
@click.option(
    "--state",
    type=click.Choice(["active", "paused", "parked", "ended"]),
    help="Only schedules in this state.",
)
@json_option
def list_schedules(
    *, url: str | None, namespace: str, task: str | None, tag: str | None, state: str | None, as_json: bool
) -> None:
    """List schedules by name, with their next time in their own zone."""

    async def read() -> tuple[list[ScheduleRecord], LiveWorkers, datetime]:
        async with client(url, namespace) as scheduler:
            fleet = LiveWorkers.of(await scheduler.store.workers())
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
    if found and (hint := missing_workers(fleet)) is not None:
        say(hint, err=True)


@schedules.command()
@database_options
@click.argument("name")
@json_option
def show(*, url: str | None, namespace: str, name: str, as_json: bool) -> None:
    """Show all that is known about a schedule, its last records and its next times."""

    async def read() -> tuple[ScheduleRecord, LiveWorkers, list[JobRecord], Sequence[Upcoming], datetime]:
        async with client(url, namespace) as scheduler:
            schedule = await scheduler.schedules.get(name)
            return (
                schedule,
                LiveWorkers.of(await scheduler.store.workers()),
                await scheduler.jobs.list(schedule=name, limit=_RECORDS_SHOWN),
                await scheduler.schedules.preview(name, _TIMES_SHOWN),
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
