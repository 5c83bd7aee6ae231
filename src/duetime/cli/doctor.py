"""`duetime doctor`."""

from __future__ import annotations

import asyncio

import click

from duetime.cli import options
from duetime.cli.database import connected
from duetime.cli.failures import ExitCode
from duetime.cli.text import say_json, say_table
from duetime.errors import StoreError, StoreMoved
from duetime.model.urls import redact_text
from duetime.scheduler.checks import check_schedules
from duetime.stores.base import Check


@click.command(short_help="Look for weak settings and schedules that nobody fires.")
@click.argument("database", metavar="[URL]", required=False)
@options.database
@options.as_json
def doctor(*, database: str | None, url: str | None, namespace: str, as_json: bool) -> None:
    """Look for what weakens a promise: settings of the database, schedules that nobody fires; and say how to mend it.

    \b
      duetime doctor postgresql://me@db.example/app
      duetime doctor --json
    """  # noqa: D301
    code = ExitCode.FAILURE
    try:
        checks = asyncio.run(_examine(database or url, namespace))
    except StoreError as error:
        checks, code = [Check.refused("database", error)], ExitCode.DATABASE
    if as_json:
        say_json([_values(check) for check in checks])
    else:
        say_table(("CHECK", "", "FINDING"), (_row(check) for check in checks))
    if not all(check.ok for check in checks):
        raise click.exceptions.Exit(code)


async def _examine(url: str | None, namespace: str) -> list[Check]:
    async with connected(url, namespace) as store:
        checks = await store.doctor()
        status = await store.schema_status()
        if status.moved is not None:
            return [*checks, Check.refused("moved", StoreMoved(status.moved))]
        # Tables of another version are not looked into.
        return [*checks, await check_schedules(store)] if status.found == status.wanted else checks


def _values(check: Check) -> dict[str, object]:
    fix = None if check.fix is None else redact_text(check.fix)
    return {"name": check.name, "ok": check.ok, "detail": redact_text(check.detail), "fix": fix}


def _row(check: Check) -> tuple[str, str, str]:
    finding = check.detail if check.ok or check.fix is None else f"{check.detail}. Fix: {check.fix}"
    return check.name, "ok" if check.ok else "FAILED", redact_text(finding)
