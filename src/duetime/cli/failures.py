"""How commands fail: one line on standard error, and an exit code that does not change between releases."""

from __future__ import annotations

from enum import IntEnum

import click

from duetime.cli.text import safe_lines
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


class ExitCode(IntEnum):
    """What a command's exit code means."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    DATABASE = 4


_CODES: tuple[tuple[type[DuetimeError], ExitCode], ...] = (
    (StoreError, ExitCode.DATABASE),
    (JobNotFound, ExitCode.NOT_FOUND),
    (ScheduleNotFound, ExitCode.NOT_FOUND),
    (UnknownTask, ExitCode.NOT_FOUND),
    (WorkerNotFound, ExitCode.NOT_FOUND),
    (ConfigError, ExitCode.USAGE),
    (InvalidValue, ExitCode.USAGE),
)


class Failure(click.ClickException):
    """Ends the command with a message and a code."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILURE) -> None:
        super().__init__(safe_lines(message))
        self.exit_code = code  # type: ignore[misc]  # click's class variable, meant to be one per error


def as_failure(error: DuetimeError) -> Failure:
    """Turn an error of the library into one of the command line."""
    return Failure(str(error), code_of(error))


def code_of(error: BaseException) -> ExitCode:
    """Return the exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILURE)
