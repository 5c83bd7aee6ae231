"""The log of a process that is a worker's own: one line per record, for people or for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from duetime.model.text import printable
from duetime.model.urls import redact_text
from duetime.runtime.settling.job_log import RECORD_FIELDS
from duetime.runtime.settling.job_log import log as job_log

LogFormat: TypeAlias = Literal["console", "json"]


class ConsoleFormatter(logging.Formatter):
    """One line per record, and the lines of its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text that no terminal obeys."""
        moment = datetime.fromtimestamp(record.created).astimezone()
        time = moment.isoformat(sep=" ", timespec="milliseconds")
        line = f"{time} {record.levelname:<8} {record.name}: {record.getMessage()}"
        return "\n".join([printable(redact_text(line)), *_indented(_traceback_text(record).splitlines())])


class JsonFormatter(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        values = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact_text(record.getMessage()),
            "pid": record.process,
        }
        if record.name == job_log.name:
            values |= {name: getattr(record, name, None) for name in RECORD_FIELDS}
        if details := _traceback_text(record):
            values["exception"] = details
        return json.dumps(values)


def configure_logging(level: str, style: LogFormat = "console") -> None:
    """Send every log line of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ConsoleFormatter() if style == "console" else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _traceback_text(record: logging.LogRecord) -> str:
    # Records of jobs and of child processes bring their traceback as text.
    parts = [record.exc_text] if record.exc_text else []
    parts += [logging.Formatter().formatException(record.exc_info)] if record.exc_info and not parts else []
    parts += [record.stack_info] if record.stack_info else []
    return redact_text("\n".join(parts))


def _indented(lines: list[str]) -> list[str]:
    """Return lines that cannot be taken for records."""
    indent = "" if all(line.startswith("  ") for line in lines) else "  "
    return [f"{indent}{printable(line.expandtabs())}" for line in lines]
