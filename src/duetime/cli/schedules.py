"""`duetime schedules`: list and show schedules, their past and what is to come, pause, trigger, delete them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, get_args
from zoneinfo import ZoneInfo

import click
import msgspec

from duetime.cli.command import (
    PendingAnswer,
    app_command,
    by_option,
    client_command,
    dry_run_option,
    option,
    schedule_names_argument,
    store_time,
)
from duetime.cli.output import (
    Answer,
    ask_each,
    confirm,
    moment_text,
    relative_time,
    shortened,
    table_lines,
    table_or,
    text_lines,
)
from duetime.cli.schedule_writing import edit, export, import_, new_arguments, put
from duetime.model.schedule.forecast import MAX_DAYS
from duetime.model.states import State
from duetime.model.stored.jobs import LiveWorkers
from duetime.model.text import counted
from duetime.model.time import LONGEST_DURATION, describe_duration
from duetime.model.triggers.preview import Upcoming
from duetime.scheduler.records import JobRecord, ScheduleChange, ScheduleRecord, ScheduleState
from duetime.scheduler.scheduler import Scheduler

_ANSWER_TEXTS: Final = {
    "unknown": "there is no such schedule",
    "unchanged": "was not paused",
    "parked": "is parked, since no code declares it; put it, or start a worker with code that declares it",
}
_MOST_TIMES: Final = 1_000
_MOST_CHANGES: Final = 1_000
_DETAIL_WIDTH: Final = 200
"""How much of a reason or of arguments is shown in a table."""
_REASON_WIDTH: Final = 40
_RECORDS_SHOWN: Final = 5
_TIMES_SHOWN: Final = 5
_RECORD_FIELDS: Final = ("id", "state", "occurrences", "reason", "error")


@click.group(short_help="List, show, write and move schedules.")
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


for command in (put, edit, export, import_):
    schedules.add_command(command)


@schedules.command("list")
@client_command
@click.option("--task", help="Only schedules of this task.")
@click.option("--tag", help="Only schedules with this tag.")
@click.option("--state", type=click.Choice(get_args(ScheduleState)), help="Only schedules in this state.")
async def list_schedules(
    scheduler: Scheduler, *, task: str | None, tag: str | None, state: str | None
) -> Answer:
    """List schedules by name, with their next time and their last run.

    Times are in the zone of the schedule. OK and FAILED count its jobs on record; a plus means that there are more.
    """
    fleet, now = LiveWorkers.of(await scheduler.store.workers()), await store_time(scheduler)
    found = [
        one
        for one in await scheduler.schedules.list()
        if task in (None, one.task) and state in (None, one.state) and (tag is None or tag in one.tags)
    ]
    hint = missing_workers(fleet) if found else None
    head = ("NAME", "STATE", "NEXT", "LAST", "OK", "FAILED", "TASK", "WHEN")
    return Answer(
        values=[schedule_values(schedule, fleet) for schedule in found],
        lines=table_or("no schedules", head, (schedule_row(schedule, fleet, now) for schedule in found)),
        notes=[] if hint is None else [hint],
    )


@schedules.command(short_help="Show all that is known about a schedule.")
@client_command
@click.argument("name")
async def show(scheduler: Scheduler, *, name: str) -> Answer:
    """Show all that is known about a schedule, its last records and its next times."""
    schedule = await scheduler.schedules.get(name)
    fleet = LiveWorkers.of(await scheduler.store.workers())
    last = await scheduler.jobs.list(schedule=name, limit=_RECORDS_SHOWN)
    upcoming = await scheduler.schedules.preview(name, _TIMES_SHOWN)
    more = {"last": [_record_values(job) for job in last], "upcoming": [*map(upcoming_values, upcoming)]}
    return Answer(
        values=schedule_values(schedule, fleet) | more,
        lines=schedule_lines(schedule, fleet, last, upcoming, now=await store_time(scheduler)),
    )


@schedules.command(short_help="Stop schedules from firing.")
@client_command
@schedule_names_argument
@click.option("--reason", help="Kept with the schedule, for others to read.")
@option("--until", "WHEN", "When it goes on by itself: 2h from now, or 2030-01-31T09:00:00Z.")
@by_option
async def pause(scheduler: Scheduler, *, names: tuple[str, ...], **given: Any) -> Answer:
    """Stop schedules from firing; what they have made and not started is taken back.

    `-` reads names from standard input. Exits with 3 when a schedule does not exist.
    """
    return await ask_each(names, partial(scheduler.schedules.pause, **given), _ANSWER_TEXTS, "paused")


@schedules.command(short_help="Let paused schedules fire again.")
@client_command
@schedule_names_argument
@by_option
async def resume(scheduler: Scheduler, *, names: tuple[str, ...], by: str | None) -> Answer:
    """Let paused schedules fire again, from now on; one record tells what has not run meanwhile.

    `-` reads names from standard input. Exits with 3 when a schedule does not exist.
    """

    async def act(name: str) -> str:
        answer = await scheduler.schedules.resume(name, by=by)
        return "parked" if (await scheduler.schedules.get(name)).parked_at is not None else answer

    return await ask_each(names, act, _ANSWER_TEXTS)


@schedules.command(short_help="Remove schedules; their records stay.")
@client_command
@schedule_names_argument
@click.option("--yes", is_flag=True, help="Do it without asking.")
@by_option
@dry_run_option
def delete(
    scheduler: Scheduler, *, names: tuple[str, ...], yes: bool, by: str | None, dry_run: bool
) -> PendingAnswer:
    """Remove schedules, and take back what they have made and not started; their records stay.

    One that code declares comes back when a worker with that code starts. On a terminal the name is asked for, or
    how many there are; elsewhere --yes is needed. `-` reads names from standard input. Exits with 3 when a schedule
    does not exist.
    """
    if not (yes or dry_run):
        what = "name of the schedule" if len(names) == 1 else "number of schedules"
        confirm(names[0] if len(names) == 1 else str(len(names)), what=what, done="deleted")

    async def act(name: str) -> str:
        if dry_run:
            await scheduler.schedules.get(name)
            return "would be deleted"
        await scheduler.schedules.delete(name, by=by)
        return "deleted"

    return ask_each(names, act, _ANSWER_TEXTS)


@schedules.command(short_help="Make a job of a schedule now.")
@app_command
@click.argument("name")
@click.argument("arguments", nargs=-1)
@by_option
async def trigger(scheduler: Scheduler, *, name: str, arguments: tuple[str, ...], by: str | None) -> Answer:
    """Make a job of a schedule now, without moving the schedule, and print its id.

    ARGUMENTS take the place of the schedule's own: name=value pairs, or one JSON object or array. They are checked
    by the task, so they need --app.

    \b
      duetime schedules trigger nightly
      duetime schedules trigger nightly days=30 --app jobs:scheduler
    """  # noqa: D301
    job = await scheduler.schedules.trigger(name, by=by, **await new_arguments(scheduler, name, arguments))
    return Answer(values={"schedule": name, "id": job.id}, lines=[job.id])


@schedules.command()
@client_command
@click.argument("name")
@by_option
async def skip(scheduler: Scheduler, *, name: str, by: str | None) -> Answer:
    """Leave out the next occurrence; a record tells who did.

    Exits with 1 when there is none: the schedule is paused, parked or over.
    """
    zone = ZoneInfo((await scheduler.schedules.get(name)).trigger.tz)
    moment = (await scheduler.schedules.skip(name, by=by)).astimezone(zone)
    return Answer(
        values={"schedule": name, "skipped": moment.isoformat()},
        lines=[f"{name}  {moment_text(moment, await store_time(scheduler))} is left out"],
    )


@schedules.command(short_help="List the next times of a schedule.")
@client_command
@click.argument("name")
@click.option("--count", default=10, type=click.IntRange(1, _MOST_TIMES), help="How many times.")
@option("--after", "MOMENT", "List times after this; else from now on.")
async def preview(scheduler: Scheduler, *, name: str, count: int, after: datetime | None) -> Answer:
    """List the next times of a schedule in its zone, with a note where the clock changes."""
    found = await scheduler.schedules.preview(name, count, after=after)
    now = await store_time(scheduler)
    rows = (upcoming_row(one, now) for one in found)
    return Answer(
        values=[*map(upcoming_values, found)],
        lines=table_or("nothing more to come", ("NEXT", "", "NOTE"), rows),
    )


@schedules.command(short_help="Make jobs for times that have passed without one.")
@client_command
@click.argument("name")
@option("--start", "MOMENT", "The first moment.", required=True)
@option("--end", "MOMENT", "The last moment.", required=True)
@by_option
@dry_run_option
async def backfill(
    scheduler: Scheduler, *, name: str, start: datetime, end: datetime, by: str | None, dry_run: bool
) -> Answer:
    """Make jobs for the occurrences of a stretch of time that have none; run twice, it makes each once.

    \b
      duetime schedules backfill nightly --start 2030-01-01T00:00:00Z --end 2030-01-08T00:00:00Z --dry-run
    """  # noqa: D301
    done = await scheduler.schedules.backfill(name, start, end, dry_run=dry_run, by=by)
    counts = f"{done.enqueued:,} of {counted(done.occurrences, 'occurrence')} {'would be ' if dry_run else ''}enqueued"
    return Answer(
        values={"schedule": name, "dry_run": dry_run, **msgspec.to_builtins(done)},
        lines=[f"{name}  {counts}, {done.already} had a job"],
    )


@schedules.command(short_help="Show the load to come.")
@client_command
@click.option("--days", type=click.IntRange(1, MAX_DAYS), default=7, help="How far to look ahead.")
@click.option("--tz", default="UTC", help="The zone to show times in.")
async def forecast(scheduler: Scheduler, *, days: int, tz: str) -> Answer:
    """Show how many jobs the schedules will make hour by hour, with the busiest minutes.

    \b
      duetime schedules forecast --days 7 --tz Europe/Riga
    """  # noqa: D301
    found = await scheduler.schedules.forecast(days=days, tz=tz)
    return Answer(values=msgspec.to_builtins(found), lines=text_lines(str(found)))


@schedules.command(short_help="List what was done to a schedule.")
@client_command
@click.argument("name")
@click.option("--limit", default=20, type=click.IntRange(1, _MOST_CHANGES), help="At most this many.")
async def history(scheduler: Scheduler, *, name: str, limit: int) -> Answer:
    """List what was done to a schedule, newest first: when, by whom, and what has changed."""
    found = await scheduler.schedules.history(name, limit=limit)
    now = await store_time(scheduler)
    head = ("WHEN", "", "WHO", "WHAT", "DETAIL")
    return Answer(
        values=[_change_values(change) for change in found],
        lines=table_or("nothing was done to it", head, (_change_row(change, now) for change in found)),
    )


def _change_row(change: ScheduleChange, now: datetime) -> tuple[str, ...]:
    at = change.at.isoformat(" ", timespec="seconds")
    return at, relative_time(change.at, now), change.who, change.verb, detail_text(change.detail)


def _change_values(change: ScheduleChange) -> object:
    return msgspec.to_builtins(replace(change, detail=detail_values(change.detail)))


def detail_values(detail: Mapping[str, Any]) -> dict[str, object]:
    """Return the detail of an entry as JSON values."""
    return {name: json_value(value) for name, value in detail.items()}


def detail_text(detail: Mapping[str, Any]) -> str:
    """Return the detail of an entry in a line."""
    return ", ".join(f"{name}: {_detail_text(value)}" for name, value in detail.items())


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
            return _length_text(value)
        case _:
            return shortened(msgspec.json.encode(value).decode(), _DETAIL_WIDTH)


def missing_workers(fleet: LiveWorkers) -> str | None:
    """Say that no worker fires schedules, or that none runs their jobs, and what to start."""
    if not fleet.fires:
        return "no living worker fires schedules; start `duetime worker` or `duetime scheduler`"
    return None if fleet.queues else "no living worker runs jobs; start `duetime worker`"


def schedule_row(schedule: ScheduleRecord, fleet: LiveWorkers, now: datetime) -> tuple[str, ...]:
    """Return the cells of a schedule in a list."""
    state = str(schedule.state)
    if schedule.paused and schedule.paused_reason:
        state += f": {shortened(schedule.paused_reason, _REASON_WIDTH)}"
    if fleet.knows(schedule.task) is False:
        state += ", unknown task"
    coming, last, counts = _next_text(schedule, now), _last_text(schedule, now), _count_texts(schedule)
    return schedule.name, state, coming, last, *counts, schedule.task, schedule.description


def _last_text(schedule: ScheduleRecord, now: datetime) -> str:
    """Say how the last run ended, when, and why."""
    if (run := schedule.last_run) is None:
        return ""
    why = shortened(run.error or run.reason or "", _REASON_WIDTH)
    return f"{run.state} {relative_time(run.finished_at, now)}{why and f': {why}'}"


def _count_texts(schedule: ScheduleRecord) -> tuple[str, str]:
    """Say how many of its jobs went well, and how many failed."""
    ok, failed = (
        f"{count}{'+' if state in schedule.at_least else ''}"
        for count, state in ((schedule.succeeded, State.SUCCEEDED), (schedule.failed, State.FAILED))
    )
    return ok, failed


def schedule_lines(
    schedule: ScheduleRecord,
    fleet: LiveWorkers,
    last: Sequence[JobRecord],
    upcoming: Sequence[Upcoming],
    *,
    now: datetime,
) -> Iterator[str]:
    """Yield a schedule line by line, then its last records and its next times."""
    for name, text in _lines(schedule, fleet, now):
        yield f"{name:16} {text}"
    if last:
        yield ""
        zone = ZoneInfo(schedule.trigger.tz)
        yield from table_lines(("LAST", "STATE", "ID", "NOTE"), (_record_row(job, zone) for job in last))
    if upcoming:
        yield ""
        yield from table_lines(("NEXT", "", "NOTE"), (upcoming_row(one, now) for one in upcoming))


def upcoming_row(one: Upcoming, now: datetime) -> tuple[str, ...]:
    """Return the cells of an occurrence to come."""
    due = None if one.due_at == one.at else f"due {one.due_at.astimezone(one.local.tzinfo):%H:%M:%S}"
    note = "; ".join(filter(None, (due, one.note)))
    return f"{one.local:%a} {one.local.isoformat(' ')}", relative_time(one.at, now), note


def upcoming_values(one: Upcoming) -> dict[str, str | None]:
    """Return an occurrence to come as JSON values."""
    moments = {"at": one.at, "local": one.local, "due_at": one.due_at}
    return {name: moment.isoformat() for name, moment in moments.items()} | {"note": one.note}


def _record_values(job: JobRecord) -> dict[str, object]:
    occurrence = None if job.occurrence is None else job.occurrence.isoformat()
    return {"occurrence": occurrence, **{name: getattr(job, name) for name in _RECORD_FIELDS}}


def schedule_values(schedule: ScheduleRecord, fleet: LiveWorkers) -> dict[str, object]:
    """Return a schedule as JSON values, lengths of time in seconds."""
    values: dict[str, object] = {f.name: json_value(getattr(schedule, f.name)) for f in fields(schedule)}
    values["at_least"] = sorted(schedule.at_least)
    return values | {"trigger": schedule.trigger.to_spec(), "task_known": fleet.knows(schedule.task)}


def json_value(value: Any) -> Any:
    """Return what can be written as JSON, lengths of time as seconds."""
    match value:
        case timedelta():
            return value.total_seconds()
        case [before, after]:
            return [json_value(before), json_value(after)]
        case _:
            return msgspec.to_builtins(value, enc_hook=str)


def _lines(schedule: ScheduleRecord, fleet: LiveWorkers, now: datetime) -> Iterator[tuple[str, str]]:
    unknown = fleet.knows(schedule.task) is False
    yield "name", schedule.name
    yield "task", f"{schedule.task}, which no living worker knows" if unknown else schedule.task
    yield "arguments", msgspec.json.encode(schedule.arguments).decode()
    yield "when", schedule.description
    yield "state", _state_text(schedule, now)
    if schedule.state == "active":
        yield "next", _next_text(schedule, now)
        if (hint := missing_workers(fleet)) is not None:
            yield "", hint
    yield "owner", "code" if schedule.owner == "code" else "user: it was put, no code declares it"
    yield "made", f"{counted(schedule.made, 'job')} by itself; {schedule.live} pending or running"
    yield "queue", f"{schedule.queue}, priority {schedule.priority}"
    if schedule.last_run is not None:
        yield "last run", _last_text(schedule, now)
    ok, failed = _count_texts(schedule)
    yield "on record", f"{ok} succeeded, {failed} failed"
    limit = schedule.overlap_limit
    yield "overlap", schedule.overlap if limit is None else f"{schedule.overlap}, at most {limit} waiting"
    yield "misfire", _misfire_text(schedule)
    if schedule.pause_after is not None:
        yield "pause after", f"{counted(schedule.pause_after, 'failure')} in a row"
    if schedule.retries is not None:
        yield "retries", str(schedule.retries)
    if schedule.timeout is not None:
        yield "timeout", _length_text(schedule.timeout)
    if schedule.tags:
        yield "tags", ", ".join(schedule.tags)
    yield "created", moment_text(schedule.created_at, now)
    yield "changed", moment_text(schedule.updated_at, now)


def _state_text(schedule: ScheduleRecord, now: datetime) -> str:
    text = str(schedule.state)
    if schedule.parked_at is not None:
        text += f" {relative_time(schedule.parked_at, now)}: no code declares it any more"
    if schedule.paused_at is not None:
        paused = f"{relative_time(schedule.paused_at, now)} by {schedule.paused_by or 'someone'}"
        text = f"paused {paused}" if schedule.state == "paused" else f"{text}; paused {paused}"
        text += f": {schedule.paused_reason}" if schedule.paused_reason else ""
        if schedule.paused_until is not None:
            text += f"; {_pause_end_text(schedule, now)}"
    return text


def _next_text(schedule: ScheduleRecord, now: datetime) -> str:
    """Say when it runs next; of one that is paused, when the pause ends, if that is known."""
    if schedule.paused:
        return _pause_end_text(schedule, now)
    if schedule.searched_until is not None:
        return f"none found up to {moment_text(schedule.searched_until, now)}"
    return "" if schedule.next_at is None else moment_text(schedule.next_at, now)


def _pause_end_text(schedule: ScheduleRecord, now: datetime) -> str:
    if schedule.paused_until is None:
        return ""
    return f"until {moment_text(schedule.paused_until.astimezone(ZoneInfo(schedule.trigger.tz)), now)}"


def _misfire_text(schedule: ScheduleRecord) -> str:
    endless = schedule.misfire_window >= timedelta(microseconds=LONGEST_DURATION)
    late = "however late" if endless else f"at most {_length_text(schedule.misfire_window)} late"
    most = f", at most {schedule.misfire_limit} of them" if schedule.misfire == "all" else ""
    return f"{schedule.misfire}, {late}{most}"


def _length_text(length: timedelta) -> str:
    return describe_duration(length // timedelta(microseconds=1))


def _record_row(job: JobRecord, zone: ZoneInfo) -> tuple[str, ...]:
    note = job.error or job.reason or ""
    if job.occurrences > 1:
        note = f"{job.occurrences} occurrences: {note}"
    if job.occurrence is None:
        note = f"by hand{': ' if note else ''}{note}"
    local = (job.occurrence or job.due_at).astimezone(zone)
    return f"{local:%a} {local.isoformat(' ', timespec='seconds')}", job.state, job.id, shortened(note, 60)
