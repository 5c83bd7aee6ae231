"""`duetime schedules export` and `import`: files of schedules."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import get_args

import click

from duetime.cli.loading import client, load_scheduler
from duetime.cli.options import by_option, database_options, dry_run_option, json_option
from duetime.cli.output import CommandFailure, ExitCode, say, say_json
from duetime.scheduler.schedule_files import MAX_FILE_LENGTH, FileFormat, ScheduleExport, ScheduleImport
from duetime.scheduler.scheduler import Scheduler

_SUFFIXES = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".crontab": "crontab", ".cron": "crontab"}

_format_option = click.option(
    "--format",
    "style",
    type=click.Choice(get_args(FileFormat)),
    help="What kind of file; else as the file's name says, else json.",
)


@click.command()
@database_options
@click.argument("names", metavar="[NAME]...", nargs=-1)
@_format_option
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
        async with client(url, namespace) as scheduler:
            return await scheduler.schedules.export(names or None, format=kind)

    made = asyncio.run(read())
    if output is None:
        click.echo(made.text, nl=False)
    else:
        _write_file(output, made.text)
        say(f"{made.count} schedule(s) written to {output}")
    for note in made.notes:
        say(note, err=True)


@click.command("import")
@database_options
@click.argument("words", metavar="[MODULE:OBJECT] FILE", nargs=-1, required=True)
@_format_option
@click.option("--no-check", is_flag=True, help="Take tasks and arguments as they are, without the code.")
@by_option
@dry_run_option
@json_option
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
    """  # noqa: D301
    *targets, name = words
    if len(targets) != (0 if no_check else 1):
        message = (
            "with --no-check give the file alone"
            if no_check
            else "give MODULE:OBJECT and a file, or --no-check and a file"
        )
        raise CommandFailure(message, ExitCode.USAGE)
    text = _read_file(name)
    scheduler = client(url, namespace) if no_check else load_scheduler(targets[0])
    kind = style or _format_by_name(None if name == "-" else Path(name))
    source = "standard input" if name == "-" else name

    async def act(scheduler: Scheduler) -> ScheduleImport:
        async with scheduler:
            return await scheduler.schedules.import_(
                text, format=kind, check=not no_check, source=source, by=by, dry_run=dry_run
            )

    done = asyncio.run(act(scheduler))
    _say_import(done, source, dry_run=dry_run, as_json=as_json)


def _say_import(done: ScheduleImport, source: str, *, dry_run: bool, as_json: bool) -> None:
    """Say what became of each schedule of a file."""
    if as_json:
        say_json({"dry_run": dry_run, "schedules": dict(done.schedules), "notes": list(done.notes)})
        return
    for schedule, outcome in done.schedules.items():
        would = "would be " if dry_run and outcome != "unchanged" else ""
        say(f"{schedule}  {would}{outcome}")
    if not done.schedules:
        say("no schedules")
    for note in done.notes:
        say(f"{source}: {note}", err=True)


def _format_by_name(path: Path | None) -> str:
    if path is None:
        return "json"
    return "crontab" if path.name == "crontab" else _SUFFIXES.get(path.suffix.lower(), "json")


def _read_file(name: str) -> str:
    """Read a file, and not more of it than is taken."""
    try:
        if name == "-":
            return sys.stdin.read(MAX_FILE_LENGTH + 1)
        with Path(name).open(encoding="utf-8", newline="") as file:
            return file.read(MAX_FILE_LENGTH + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailure(f"{name} cannot be read: {error}", ExitCode.USAGE) from None


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
