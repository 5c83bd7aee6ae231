"""What commands print: lines, tables and JSON that are safe for any terminal, questions, and failures with their exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import IntEnum

import click

from duetime.errors import (
    ConfigError,
    DuetimeError,
    InvalidValue,
    JobNotFound,
    ScheduleNotFound,
    StoreError,
    UnknownTask,
    WorkerNotFound,
)
from duetime.model.text import printable
from duetime.model.urls import redact_text

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def safe_lines(text: str) -> str:
    """Return a text of several lines without the passwords of URLs in it, and without what a terminal might obey."""
    return "\n".join(printable(line.expandtabs()) for line in redact_text(text).splitlines())


def say(text: str, *, err: bool = False) -> None:
    """Print one line, on standard error if it is not what was asked for."""
    click.echo(printable(text), err=err)


def say_lines(text: str, *, indent: str = "") -> None:
    """Print a text that has lines of its own."""
    for line in text.splitlines():
        say(indent + line.expandtabs())


def say_json(value: object) -> None:
    """Print a value as JSON; only ASCII, so that no terminal obeys it."""
    click.echo(json.dumps(value, indent=2))


def say_json_line(value: object) -> None:
    """Print a value as one line of JSON, at once."""
    click.echo(json.dumps(value))


def table_lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; the last column is as wide as it likes."""
    lines = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head) - 1)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        yield "  ".join([*cells, line[-1]]).rstrip()


def say_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns."""
    for line in table_lines(head, rows):
        click.echo(line)


def shortened(text: str, width: int) -> str:
    """Return the first line of a text, cut to a width."""
    line = text.partition("\n")[0]
    return line if len(line) <= width else f"{line[: width - 1]}…"


def relative_time(moment: datetime, now: datetime) -> str:
    """Say when something was or will be, as seen from now: `in 9s`, `3m ago`."""
    length = rough_length(abs(moment - now))
    return f"in {length}" if moment > now else f"{length} ago"


def rough_length(length: timedelta) -> str:
    """Say a length of time roughly, in its largest unit."""
    seconds = round(length.total_seconds())
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


class ExitCode(IntEnum):
    """What a command's exit code means."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    DATABASE = 4


_CODE_OF_ERROR: tuple[tuple[type[DuetimeError], ExitCode], ...] = (
    (StoreError, ExitCode.DATABASE),
    (JobNotFound, ExitCode.NOT_FOUND),
    (ScheduleNotFound, ExitCode.NOT_FOUND),
    (UnknownTask, ExitCode.NOT_FOUND),
    (WorkerNotFound, ExitCode.NOT_FOUND),
    (ConfigError, ExitCode.USAGE),
    (InvalidValue, ExitCode.USAGE),
)


class CommandFailure(click.ClickException):
    """Ends the command with a message and a code."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILURE) -> None:
        super().__init__(safe_lines(message))
        self.exit_code = code  # type: ignore[misc]  # click's class variable, meant to be one per error


def as_command_failure(error: DuetimeError) -> CommandFailure:
    """Turn an error of the library into one of the command line."""
    return CommandFailure(str(error), exit_code_of(error))


def exit_code_of(error: BaseException) -> ExitCode:
    """Return the exit code for an error."""
    return next((code for kind, code in _CODE_OF_ERROR if isinstance(error, kind)), ExitCode.FAILURE)


def confirm(expected: str, *, what: str, done: str) -> None:
    """Have somebody type what they mean; without a terminal, or with another answer, nothing is done."""
    if not is_interactive():
        raise CommandFailure("this cannot be undone; say --yes, or --dry-run to see first", ExitCode.USAGE)
    given = click.prompt(f"This cannot be undone. Type the {what}", err=True)
    if given != expected:
        raise CommandFailure(f"{given!r} is not {expected!r}; nothing was {done}", ExitCode.USAGE)


def is_interactive() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty()
