"""How commands fail: one line on standard error, and an exit code that does not change between releases."""

from __future__ import annotations

import re
from enum import IntEnum

import click

from duetime.cli.text import printable
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

# Bounded, and without the scheme before it: log lines of any length go through here.
_PASSWORD = re.compile(r"(?P<before>://[^\s:/@]{0,300}):\S{0,4000}@")
_PASSWORD_OPTION = re.compile(r"(?P<before>[?&](?:password|sslpassword)=)[^\s&]*", re.IGNORECASE)


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
        super().__init__("\n".join(printable(line) for line in without_passwords(message).splitlines()))
        self.exit_code = code  # type: ignore[misc]  # click's class variable, meant to be one per error


def as_failure(error: DuetimeError) -> Failure:
    """Turn an error of the library into one of the command line."""
    return Failure(str(error), code_of(error))


def code_of(error: BaseException) -> ExitCode:
    """Return the exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILURE)


def without_passwords(text: str) -> str:
    """Return a text with the passwords of the URLs in it blotted out."""
    return _PASSWORD_OPTION.sub(r"\g<before>***", _PASSWORD.sub(r"\g<before>:***@", text))
