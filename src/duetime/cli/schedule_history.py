"""`duetime schedules history`: who changed what."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.text import relative, say, say_json, say_table, shortened
from duetime.model import durations
from duetime.model.instants import to_datetime
from duetime.scheduler.schedule_records import ScheduleChange

_MOST = 1_000
_WIDTH = 200
"""How much of a reason or of arguments is shown in a table."""


@click.command()
@options.database
@click.argument("name")
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1, _MOST), help="At most so many."
)
@options.as_json
def history(*, url: str | None, namespace: str, name: str, limit: int, as_json: bool) -> None:
    """List what was done to a schedule, newest first: when, by whom, and what has changed."""

    async def read() -> tuple[Sequence[ScheduleChange], datetime]:
        async with client(url, namespace) as scheduler:
            return await scheduler.schedules.history(name, limit=limit), to_datetime(
                await scheduler.store.now()
            )

    found, now = asyncio.run(read())
    if as_json:
        say_json([_values(change) for change in found])
    elif found:
        say_table(("WHEN", "", "WHO", "WHAT", "DETAIL"), (_row(change, now) for change in found))
    else:
        say("nothing was done to it")


def _row(change: ScheduleChange, now: datetime) -> tuple[str, ...]:
    at = change.at.isoformat(" ", timespec="seconds")
    detail = ", ".join(f"{name}: {_told(value)}" for name, value in change.detail.items())
    return at, relative(change.at, now), change.who, change.verb, detail


def _values(change: ScheduleChange) -> object:
    """Return a change as JSON values, lengths of time in seconds."""
    detail = {name: _plain(value) for name, value in change.detail.items()}
    return msgspec.to_builtins(replace(change, detail=detail))


def _plain(value: Any) -> Any:
    match value:
        case [before, after]:
            return [_plain(before), _plain(after)]
        case timedelta():
            return value.total_seconds()
        case _:
            return value


def _told(value: Any) -> str:
    """Say what a field was and is, or what was said."""
    match value:
        case [before, after]:
            return f"{_text(before)} → {_text(after)}"
        case _:
            return _text(value)


def _text(value: Any) -> str:
    match value:
        case None:
            return "none"
        case str():
            return shortened(value, _WIDTH)
        case datetime():
            return value.isoformat(" ")
        case timedelta():
            return durations.describe(value // timedelta(microseconds=1))
        case _:
            return shortened(msgspec.json.encode(value).decode(), _WIDTH)
