"""`duetime schedules put`, `edit`, `export` and `import`: schedules from options, and to and from files."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

import click

from duetime.cli import command
from duetime.cli.command import PendingAnswer, all_options, option
from duetime.cli.output import Answer, CommandFailure, ExitCode, moment_text, say
from duetime.model.schedule.files import read_trigger
from duetime.model.schedule.options import ScheduleOptionValues
from duetime.model.schedule.record import Misfire, Overlap
from duetime.model.text import counted
from duetime.scheduler.lookup import find_task
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.task import read_arguments
from duetime.scheduler.transfer.schedule_files import (
    MAX_FILE_LENGTH,
    FileFormat,
    ImportFormat,
    ScheduleExport,
)

_OVERLAPS, _MISFIRES = click.Choice(get_args(Overlap)), click.Choice(get_args(Misfire))

definition_options = all_options(
    option("--cron", "EXPRESSION", "By a cron expression, such as '0 3 * * MON-FRI'."),
    option("--every", "DURATION", "At equal intervals, such as 15m or '1 month'.", type=str),
    option("--at", "MOMENT", "At this moment; may be repeated.", multiple=True),
    option("--rrule", "RULE", "By a rule of RFC 5545, such as 'FREQ=MONTHLY;BYDAY=-1FR'."),
    option("--tz", "ZONE", "The zone of --cron, --rrule and months, such as Europe/Riga.  [default: UTC]"),
    option("--start", "MOMENT", "When it begins; --every and --rrule count from it."),
    option("--end", "MOMENT", "When it ends."),
    option("--times", "N", "How many jobs it makes at most.", type=click.IntRange(1)),
    option("--jitter", "DURATION", "Put each job off by an amount of its own, up to this."),
    click.option("--overlap", type=_OVERLAPS, help="What happens when the run before has not ended."),
    option("--overlap-limit", "N", "How many jobs may wait with queue_all."),
    click.option("--misfire", type=_MISFIRES, help="Which missed occurrences still run."),
    option("--misfire-window", "DURATION", "How late a missed occurrence may still run."),
    option("--misfire-limit", "N", "How many missed occurrences run with all."),
    option("--pause-after", "N", "Pause it after this many failures in a row."),
    option("--queue", "NAME", "In place of the task's own."),
    option("--priority", "N", "From 0 (first) to 9, in place of the task's own."),
    option("--retries", "N", "In place of the task's own."),
    option("--timeout", "DURATION", "In place of the task's own."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Mark its jobs; may be repeated."),
)
"""What makes up a schedule."""


def split_definition(given: Mapping[str, Any]) -> tuple[dict[str, Any], ScheduleOptionValues]:
    """Return what was said about time, and the policies that were named; what was not given is left out."""
    said = {name: value for name, value in given.items() if value not in (None, ())}
    policies = {name: said.pop(name) for name in ScheduleOptionValues.__optional_keys__ & said.keys()}
    if "at" in said:
        said["at"] = list(said["at"])
    return said, cast("ScheduleOptionValues", policies)


@click.command(short_help="Store a schedule that calls TASK.")
@command.target_command
@click.argument("name")
@click.argument("task")
@click.argument("arguments", nargs=-1)
@definition_options
@command.by_option
def put(
    scheduler: Scheduler, *, name: str, task: str, arguments: tuple[str, ...], by: str | None, **given: Any
) -> PendingAnswer:
    """Store a schedule that calls TASK, in place of the one of this name if there is one.

    All of it is replaced: arguments and options that are not given are as for a new schedule. To change some and keep
    the others, use `duetime schedules edit`.

    ARGUMENTS are name=value pairs, read as the type of the parameter, or one JSON object or array. Give one of
    --cron, --every, --at and --rrule. Nothing is stored when anything is refused.

    \b
      duetime schedules put jobs:scheduler nightly jobs.tidy days=7 --cron "0 3 * * *" --tz Europe/Riga
      duetime schedules put jobs:scheduler rates jobs.fetch --every 15m --overlap queue_one --tag money
    """  # noqa: D301
    handler = find_task(scheduler.tasks, task)
    when, policies = split_definition(given)
    trigger = read_trigger(when, name=name)
    args, kwargs = read_arguments(handler, arguments)

    async def act() -> Answer:
        done = await scheduler.schedules.put(name, trigger, task, args=args, kwargs=kwargs, by=by, **policies)
        return await _outcome(scheduler, name, done)

    return act()


@click.command()
@command.app_command
@click.argument("name")
@click.argument("arguments", nargs=-1)
@definition_options
@command.by_option
def edit(
    scheduler: Scheduler, *, name: str, arguments: tuple[str, ...], by: str | None, **given: Any
) -> PendingAnswer:
    """Change what is given of a schedule, and nothing else.

    ARGUMENTS take the place of the schedule's own: name=value pairs, or one JSON object or array. They are checked
    by the task, so they need --app. What is said about time is the whole of it: --cron "0 4 * * *" without --tz
    means UTC. Tags take the place of those before. Nothing is changed when anything is refused.

    \b
      duetime schedules edit nightly --cron "0 4 * * *" --tz Europe/Riga
      duetime schedules edit nightly --queue slow --retries 5
      duetime schedules edit nightly days=30 --app jobs:scheduler
    """  # noqa: D301
    when, values = split_definition(given)
    changes: dict[str, Any] = dict(values)
    if not (when or values or arguments):
        raise CommandFailure("say what to change, such as --queue slow")
    if when:
        changes["trigger"] = read_trigger(when, name=name)

    async def act() -> Answer:
        changes.update(await new_arguments(scheduler, name, arguments))
        return await _outcome(scheduler, name, await scheduler.schedules.edit(name, by=by, **changes))

    return act()


async def new_arguments(scheduler: Scheduler, name: str, given: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments that take the place of a schedule's own, checked by its task; nothing if none are given."""
    if not given:
        return {}
    handler = find_task(scheduler.tasks, (await scheduler.schedules.get(name)).task)
    return read_arguments(handler, given)._asdict()


async def _outcome(scheduler: Scheduler, name: str, answer: str) -> Answer:
    """Tell what came of it, and when the schedule runs next."""
    schedule, now = await scheduler.schedules.get(name), await command.store_time(scheduler)
    following, searched = schedule.next_at, schedule.searched_until
    next_at = None if following is None else following.isoformat()
    lines = [f"{name}  {answer}: {schedule.description}"]
    if following is not None and not schedule.paused:
        lines.append(f"next: {moment_text(following, now)}")
    if searched is not None:
        lines.append(f"next: none found up to {moment_text(searched, now)}, when the search goes on")
    values = {"schedule": name, "answer": answer, "when": schedule.description, "next_at": next_at}
    return Answer(values=values, lines=lines)


_SUFFIXES = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".crontab": "crontab", ".cron": "crontab"}
_SYSTEM_CRONTABS = {Path("/etc/crontab"), Path("/etc/cron.d")}


_format_option = partial(
    click.option, "--format", "style", help="What kind of file; else as the file's name says, else json."
)


@click.command(short_help="Write schedules to a file or to standard output.")
@command.database_options
@click.argument("names", metavar="[NAME]...", nargs=-1)
@_format_option(type=click.Choice(get_args(FileFormat)))
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
def export(
    *, url: str | None, namespace: str, names: tuple[str, ...], style: str | None, output: Path | None
) -> None:
    """Write schedules to a file or to standard output: all, or those named.

    Parked and ended ones are left out. A crontab has the times, tasks and arguments alone; JSON and YAML have
    everything.

    \b
      duetime schedules export > schedules.json
      duetime schedules export nightly weekly --output schedules.yaml
      duetime schedules export --format crontab
    """  # noqa: D301
    kind = style or _format_by_name(output)

    async def read() -> ScheduleExport:
        async with command.client(url, namespace) as scheduler:
            return await scheduler.schedules.export(names or None, format=kind)

    made = asyncio.run(read())
    if output is None:
        click.echo(made.text, nl=False)
    else:
        _write_file(output, made.text)
        say(f"{counted(made.count, 'schedule')} written to {output}")
    for note in made.notes:
        say(note, err=True)


@click.command("import", short_help="Store the schedules of a file.")
@command.database_options
@click.argument("words", metavar="[MODULE:OBJECT] FILE", nargs=-1, required=True)
@_format_option(type=click.Choice(get_args(ImportFormat)))
@click.option("--no-check", is_flag=True, help="Take tasks and arguments as they are, without the code.")
@command.by_option
@command.dry_run_option
@command.json_option
def import_(
    *,
    url: str | None,
    namespace: str,
    words: tuple[str, ...],
    style: str | None,
    no_check: bool,
    by: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Store the schedules of a file: all of them, or none if anything is wrong with one.

    MODULE:OBJECT is the scheduler whose tasks and database are meant; with --no-check the database is that of
    --url, and the tasks are not looked at. `-` reads standard input. Schedules that the file does not have stay as
    they are, and what is paused stays paused.

    \b
      duetime schedules import jobs:scheduler schedules.yaml --dry-run
      duetime schedules import --no-check --url sqlite:///other.db schedules.json
      crontab -l | duetime schedules import jobs:scheduler - --format crontab
      duetime schedules import jobs:scheduler tasks.cron --format system-crontab    # with a column of users
    """  # noqa: D301
    *targets, name = words
    if no_check and targets:
        raise CommandFailure("with --no-check give the file alone")
    if not no_check and len(targets) != 1:
        raise CommandFailure("give MODULE:OBJECT and a file, or --no-check and a file")
    text = _read_file(name)
    scheduler = command.client(url, namespace) if no_check else command.load_scheduler(targets[0])
    kind = style or _format_by_name(None if name == "-" else Path(name))
    source = "standard input" if name == "-" else name

    async def act() -> Answer:
        done = await scheduler.schedules.import_(
            text, format=kind, check=not no_check, source=source, by=by, dry_run=dry_run
        )
        would = {answer: "would be " for answer in ("created", "changed") if dry_run}
        outcomes = [f"{name}  {would.get(answer, '')}{answer}" for name, answer in done.schedules.items()]
        return Answer(
            values={"dry_run": dry_run, "schedules": dict(done.schedules), "notes": list(done.notes)},
            lines=outcomes or ["no schedules"],
            notes=[f"{source}: {note}" for note in done.notes],
        )

    command.run_answer(scheduler, act(), as_json=as_json)


def _format_by_name(path: Path | None) -> str:
    if path is None:
        return "json"
    if _SYSTEM_CRONTABS & {path, path.parent}:
        return "system-crontab"
    return "crontab" if path.name == "crontab" else _SUFFIXES.get(path.suffix.lower(), "json")


def _read_file(name: str) -> str:
    """Read a file, and not more of it than is taken."""
    try:
        if name == "-":
            return sys.stdin.read(MAX_FILE_LENGTH + 1)
        with Path(name).open(encoding="utf-8", newline="") as file:
            return file.read(MAX_FILE_LENGTH + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailure(f"{name} cannot be read: {error}") from None


def _write_file(path: Path, text: str) -> None:
    """Write a file that only its owner can read, since arguments may be secret, and all of it or nothing."""
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device stays what it is.
            path.write_text(text, encoding="utf-8")
            return
        target = path.resolve()
        handle, made = tempfile.mkstemp(dir=target.parent, prefix=".duetime-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(made).replace(target)
        except BaseException:
            Path(made).unlink()
            raise
    except OSError as error:
        raise CommandFailure(f"{path} cannot be written: {error}", ExitCode.FAILURE) from None
