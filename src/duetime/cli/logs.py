"""What a worker says while it works: log lines on standard error, for people or for machines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, TypeVar

import click

from duetime.cli.failures import without_passwords
from duetime.cli.text import printable

F = TypeVar("F", bound=Callable[..., Any])

Format: TypeAlias = Literal["console", "json"]


class ConsoleFormatter(logging.Formatter):
    """One line per record, and the lines of its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text that no terminal obeys."""
        moment = datetime.fromtimestamp(record.created).astimezone()
        time = moment.isoformat(sep=" ", timespec="milliseconds")
        line = f"{time} {record.levelname:<8} {record.name}: {record.getMessage()}"
        extra = _details(record).splitlines()
        return "\n".join(printable(part) for part in (without_passwords(line), *extra))


class JsonFormatter(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        values = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_passwords(record.getMessage()),
            "pid": record.process,
        }
        if details := _details(record):
            values["exception"] = details
        return json.dumps(values)


def options(command: F) -> F:
    """Add the options that say how much to log, and how."""
    level = click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="How much to say, on standard error.",
    )
    style = click.option(
        "--log-format",
        type=click.Choice(["console", "json"]),
        default="console",
        show_default=True,
        help="For people or for machines.",
    )
    return level(style(command))


def configure(level: str, style: Format) -> None:
    """Send every log line of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ConsoleFormatter() if style == "console" else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _details(record: logging.LogRecord) -> str:
    plain = logging.Formatter()
    parts = [plain.formatException(record.exc_info)] if record.exc_info else []
    # A record of a child process brings its traceback as text.
    parts += [record.exc_text] if record.exc_text and not record.exc_info else []
    parts += [record.stack_info] if record.stack_info else []
    return without_passwords("\n".join(parts))
