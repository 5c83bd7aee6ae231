"""Asks before something is destroyed."""

from __future__ import annotations

import sys

import click

from duetime.cli.failures import ExitCode, Failure


def confirm(expected: str, *, what: str, done: str) -> None:
    """Have somebody type what they mean; without a terminal, or with another answer, nothing is done."""
    if not somebody_there():
        raise Failure("this cannot be undone; say --yes, or --dry-run to see first", ExitCode.USAGE)
    given = click.prompt(f"This cannot be undone. Type the {what}", err=True)
    if given != expected:
        raise Failure(f"{given!r} is not {expected!r}; nothing was {done}", ExitCode.USAGE)


def somebody_there() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty()
