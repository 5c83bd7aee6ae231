"""What commands print: lines, tables and JSON that are safe for any terminal, questions, and failures with their exit codes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Final, TypeAlias

import click
import msgspec

from duetime import errors
from duetime.model.text import printable
from duetime.model.urls import redact_text

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


_COLOURS: Final = {
    **dict.fromkeys(("succeeded", "active", "alive", "served", "ok"), "green"),
    **dict.fromkeys(("failed", "FAILED", "dead", "no worker"), "red"),
    **dict.fromkeys(("paused", "parked", "skipped", "cancelled"), "yellow"),
    "running": "cyan",
}
"""The states that have a colour on a terminal."""
_COLOURED: Final = re.compile(rf"(?:{'|'.join(_COLOURS)})\b")


class SafeLine(str):
    """A line that can be printed as it is: it may have our colours, and nothing else that a terminal obeys."""

    __slots__ = ()


def safe_lines(text: str) -> str:
    """Return a text of several lines without the passwords of URLs in it, and without what a terminal might obey."""
    return "\n".join(printable(line.expandtabs()) for line in redact_text(text).splitlines())


def say(text: str, *, err: bool = False) -> None:
    """Print one line, on standard error if it is not what was asked for."""
    click.echo(text if isinstance(text, SafeLine) else printable(text), err=err)


def say_lines(text: str) -> None:
    """Print a text that has lines of its own."""
    for line in text_lines(text):
        say(line)


def say_json(value: object, *, indent: int | None = 2) -> None:
    """Print a value as JSON, on one line without `indent`; only ASCII, so that no terminal obeys it."""
    click.echo(json.dumps(value, indent=indent))


def table_lines(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, most: int | None = None
) -> Iterator[SafeLine]:
    """Yield the lines of a table, at `most` so wide; on a terminal the column STATE has colours."""
    lines = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head) - 1)]
    state = head.index("STATE") if "STATE" in head and shows_colours() else None
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        text = "  ".join([*cells, line[-1]]).rstrip()
        text = text if most is None else shortened(text, most)
        if state is not None and (found := _COLOURED.match(text, sum(widths[:state]) + 2 * state)):
            word = click.style(found[0], fg=_COLOURS[found[0]])
            text = f"{text[: found.start()]}{word}{text[found.end() :]}"
        yield SafeLine(text)


def table_or(none: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, or one line that says that there are no rows."""
    found = list(rows)
    yield from table_lines(head, found) if found else [none]


def record_lines(values: Mapping[str, object], *, without: str = "") -> Iterator[str]:
    """Yield a line for each value that a record has."""
    for name, value in values.items():
        if value is not None and name != without:
            yield f"{name:16} {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"


def text_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text."""
    return (line.expandtabs() for line in text.splitlines())


def shortened(text: str, width: int) -> str:
    """Return the first line of a text, cut to a width."""
    line = text.partition("\n")[0]
    return line if len(line) <= width else f"{line[: width - 1]}…"


def relative_time(moment: datetime, now: datetime) -> str:
    """Say when something was or will be, as seen from now: `in 9s`, `3m ago`."""
    seconds = round(abs(moment - now).total_seconds())
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"in {seconds // size}{unit}" if moment > now else f"{seconds // size}{unit} ago"


def moment_text(moment: datetime, now: datetime) -> str:
    """Say when something is: in its own zone, and as seen from now."""
    return f"{moment.isoformat(' ', timespec='seconds')} ({relative_time(moment, now)})"


class ExitCode(IntEnum):
    """What a command's exit code means."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    DATABASE = 4


_NOT_FOUND = (
    errors.JobNotFound,
    errors.ScheduleNotFound,
    errors.UnknownTask,
    errors.WorkerNotFound,
    errors.TokenNotFound,
)
_ERRORS_OF_CODE: dict[ExitCode, tuple[type[errors.DuetimeError], ...]] = {
    ExitCode.DATABASE: (errors.StoreError,),
    ExitCode.NOT_FOUND: _NOT_FOUND,
    ExitCode.USAGE: (errors.ConfigError, errors.InvalidValue),
}


class CommandFailure(click.ClickException):
    """Ends the command with a message and a code, by default the one for a wrong command."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(safe_lines(message))
        self.exit_code = code  # type: ignore[misc]  # click's class variable, meant to be one per error


def exit_code_of(error: BaseException) -> ExitCode:
    """Return the exit code for an error."""
    codes = (code for code, kinds in _ERRORS_OF_CODE.items() if isinstance(error, kinds))
    return next(codes, ExitCode.FAILURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command prints, as JSON or in lines for people, and the code that it exits with."""

    values: object
    lines: Iterable[str]
    notes: Iterable[str] = ()
    """What goes to standard error, unless JSON is asked for."""
    json_notes: Iterable[str] = ()
    """What goes to standard error if JSON is asked for."""
    code: ExitCode = ExitCode.OK

    def print(self, *, as_json: bool) -> None:
        """Print it; end the command unless all went well."""
        if as_json:
            say_json(self.values)
        else:
            for line in self.lines:
                say(line)
        for note in self.json_notes if as_json else self.notes:
            say(note, err=True)
        if self.code:
            raise click.exceptions.Exit(self.code)


_REFUSALS: dict[type[Exception], str] = {
    errors.JobNotFound: "unknown",
    errors.ScheduleNotFound: "unknown",
    errors.JobActive: "active",
    errors.JobEnded: "finished",
    TimeoutError: "unanswered",
}


def answer_of_each(answers: Mapping[str, str], texts: Mapping[str, str]) -> Answer:
    """Return a line for each job, schedule or queue; the code is that of the worst answer."""
    refused = {*answers.values()}.intersection(_REFUSALS.values())
    code = ExitCode.FAILURE if refused else ExitCode.OK
    return Answer(
        values=dict(answers),
        lines=(f"{name}  {texts.get(answer, answer)}" for name, answer in answers.items()),
        code=ExitCode.NOT_FOUND if "unknown" in refused else code,
    )


Action: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Does something to a job or schedule, and may say what."""


async def collect_answers(names: Iterable[str], act: Action, done: str = "") -> dict[str, str]:
    """Do something to each job or schedule, and go on when one is not there or refuses."""
    answers: dict[str, str] = {}
    for name in names:
        try:
            answers[name] = await act(name) or done
        except tuple(_REFUSALS) as error:
            answers[name] = _REFUSALS[type(error)]
    return answers


async def ask_each(names: Iterable[str], act: Action, texts: Mapping[str, str], done: str = "") -> Answer:
    """Do something to each job or schedule, and tell what became of each."""
    return answer_of_each(await collect_answers(names, act, done), texts)


def confirm(expected: str, *, what: str, done: str) -> None:
    """Ask the user to type a text; raise `CommandFailure` for another one, and where there is no terminal."""
    check_interactive()
    given = click.prompt(f"This cannot be undone. Type the {what}", err=True)
    if given != expected:
        raise CommandFailure(f"{given!r} is not {expected!r}; nothing was {done}")


def shows_colours() -> bool:
    """Whether standard output is a terminal, and the user has not asked for no colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def check_interactive() -> None:
    """Raise `CommandFailure` where no one can be asked."""
    if not is_interactive():
        raise CommandFailure("this cannot be undone; say --yes, or --dry-run to see first")


def is_interactive() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin.isatty()
