"""What commands print: safe for any terminal, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import click

from duetime.model.shown import printable
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


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; the last column is as wide as it likes."""
    lines = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head) - 1)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        yield "  ".join([*cells, line[-1]]).rstrip()


def say_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns."""
    for line in table(head, rows):
        click.echo(line)


def shortened(text: str, width: int) -> str:
    """Return the first line of a text, cut to a width."""
    line = text.partition("\n")[0]
    return line if len(line) <= width else f"{line[: width - 1]}…"


def relative(moment: datetime, now: datetime) -> str:
    """Say when something was or will be, as seen from now: `in 9s`, `3m ago`."""
    length = span(abs(moment - now))
    return f"in {length}" if moment > now else f"{length} ago"


def span(length: timedelta) -> str:
    """Say a length of time roughly, in its largest unit."""
    seconds = round(length.total_seconds())
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
