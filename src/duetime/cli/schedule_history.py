"""`duetime schedules history`: who changed what."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.text import relative, say, say_json, say_table
from duetime.model import durations
from duetime.model.instants import to_datetime
from duetime.model.triggers.text import from_text
from duetime.scheduler import ScheduleChange

_MOST = 1_000
_INSTANTS = {"occurrence", "until", "start", "end", "parked_at"}
_LENGTHS = {"timeout", "misfire_window"}


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
        say_json([msgspec.to_builtins(change) for change in found])
    elif found:
        say_table(("WHEN", "", "WHO", "WHAT", "DETAIL"), (_row(change, now) for change in found))
    else:
        say("nothing was done to it")


def _row(change: ScheduleChange, now: datetime) -> tuple[str, ...]:
    at = change.at.isoformat(" ", timespec="seconds")
    detail = ", ".join(f"{name}: {_told(name, value)}" for name, value in change.detail.items())
    return at, relative(change.at, now), change.who, change.verb, detail


def _told(name: str, value: Any) -> str:
    """Say what a field was and is, or what was said."""
    match value:
        case [before, after]:
            return f"{_text(name, before)} → {_text(name, after)}"
        case _:
            return _text(name, value)


def _text(name: str, value: Any) -> str:
    if name == "trigger" and isinstance(value, str):
        return from_text(value).describe()
    if name in _INSTANTS and isinstance(value, int):
        return to_datetime(value).isoformat(" ")
    if name in _LENGTHS and isinstance(value, int):
        return durations.describe(value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
