"""Options and arguments that several commands share, and how their values are read."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

import click

from duetime.errors import InvalidDuration
from duetime.model.time import parse_duration

F = TypeVar("F", bound=Callable[..., Any])


def read_duration(text: str) -> timedelta:
    """Read a length of time: `10s`, `1h30m`, or a number of seconds."""
    given: str | float = text
    with contextlib.suppress(ValueError):
        given = float(text)
    try:
        return timedelta(microseconds=parse_duration(given, what="it"))
    except InvalidDuration:
        message = f"{text!r} is no duration; write 10s, 1h30m or a number of seconds"
        raise click.BadParameter(message) from None


def read_moment(text: str) -> datetime:
    """Read a point in time in ISO 8601, which must name its zone."""
    example = "2030-01-31T09:00:00+01:00 or 2030-01-31T08:00:00Z"
    read = _read_iso(text, example)
    if read.utcoffset() is None:
        raise click.BadParameter(f"{text!r} has no time zone; write {example}")
    return read


def read_moment_or_duration(text: str) -> datetime | timedelta:
    """Read a length of time, or a point in time in ISO 8601, which must name its zone."""
    with contextlib.suppress(click.BadParameter):
        return read_duration(text)
    try:
        datetime.fromisoformat(text)
    except ValueError:
        example = "2h, or 2030-01-31T09:00:00+01:00"
        raise click.BadParameter(
            f"{text!r} is neither a duration nor a point in time; write {example}"
        ) from None
    return read_moment(text)


def read_wall_moment(text: str) -> datetime:
    """Read a point in time in ISO 8601, perhaps without a zone."""
    with contextlib.suppress(ValueError):
        date.fromisoformat(text)
        raise click.BadParameter(f"{text!r} is a whole day; say the time, too, such as '{text} 03:00'")
    return _read_iso(text, "'2030-01-31 03:00', or with a zone 2030-01-31T03:00:00+01:00")


def database_options(command: F) -> F:
    """Add the options that say which database."""
    url = click.option(
        "--url",
        envvar="DUETIME_URL",
        help="The database; else $DUETIME_URL, else sqlite:///duetime.db in this folder. "
        "A password is safer in the variable than in a command that others can list.",
    )
    namespace = click.option(
        "--namespace", default="duetime", show_default=True, help="Which Duetime in that database."
    )
    return url(namespace(command))


def _read_iso(text: str, example: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no point in time; write {example}") from None


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")

app_option = click.option(
    "--app",
    metavar="MODULE:OBJECT",
    help="The code that other arguments are checked by; its database is meant.",
)

by_option = click.option("--by", metavar="WHO", help="Who asks, kept with the change; else user@host.")


def schedule_names_argument(command: F) -> F:
    """Take names of schedules; `-` stands for those on standard input, the first word of each line."""
    names = click.argument("names", metavar="NAME...", nargs=-1, required=True, callback=_read_names)
    return names(command)


def job_ids_argument(command: F) -> F:
    """Take ids of jobs; `-` stands for those on standard input, the first word of each line."""
    ids = click.argument("job_ids", metavar="ID...", nargs=-1, required=True, callback=read_ids)
    return ids(command)


def read_ids(_ctx: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Put the ids on standard input in the place of `-`."""
    return _with_input(given, what="ids")


def _read_names(_ctx: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return _with_input(given, what="names")


def _with_input(given: tuple[str, ...], *, what: str) -> tuple[str, ...]:
    words = [found for word in given for found in (_words_on_input() if word == "-" else [word])]
    if given and not words:
        raise click.BadParameter(f"there are no {what} on standard input")
    return tuple(dict.fromkeys(words))


def _words_on_input() -> list[str]:
    return [line.split()[0] for line in sys.stdin if line.strip()]
