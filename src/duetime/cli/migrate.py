"""`duetime migrate`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import click

from duetime.cli import options
from duetime.cli.database import connected
from duetime.cli.failures import ExitCode
from duetime.cli.text import say, say_json
from duetime.stores.base import SchemaStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What the tables were like, and what they lack as SQL."""

    status: SchemaStatus
    sql: str


@click.command()
@options.database
@click.option("--sql", is_flag=True, help="Print the statements that are missing and change nothing.")
@click.option(
    "--check",
    is_flag=True,
    help="Change nothing; exit with 1 if something is missing, with 4 if there is no database.",
)
@options.as_json
def migrate(*, url: str | None, namespace: str, sql: bool, check: bool, as_json: bool) -> None:
    """Create or update the tables.

    Any number of processes may do this at once, and a scheduler does it by itself when it opens, unless it was
    made with auto_migrate=False.

    \b
      duetime migrate --url postgresql://me@db.example/app
      duetime migrate --sql > step.sql          for someone else to apply
      duetime migrate --check                   in a deployment, before the new code starts
    """  # noqa: D301
    if sql and check:
        raise click.UsageError("give either --sql or --check, not both")
    before = asyncio.run(_look(url, namespace, apply=not sql and not check))
    status = before.status
    if as_json:
        say_json(_values(before, show_sql=sql, applied=not sql and not check))
    elif sql:
        click.echo(before.sql, nl=False)
    else:
        say(_sentence(status, check=check))
    # Tables that are newer than the code fit as little as older ones.
    if (check and status.found != status.wanted) or status.found > status.wanted:
        raise click.exceptions.Exit(ExitCode.FAILURE)


async def _look(url: str | None, namespace: str, *, apply: bool) -> Looked:
    async with connected(url, namespace, make=apply) as store:
        looked = Looked(status=await store.schema_status(), sql=await store.pending_sql())
        if apply and looked.status.pending:
            await store.migrate()
        return looked


def _values(looked: Looked, *, show_sql: bool, applied: bool) -> dict[str, object]:
    status = looked.status
    values: dict[str, object] = {
        "found": status.found,
        "wanted": status.wanted,
        "missing": list(status.pending),
        "applied": applied and bool(status.pending),
    }
    return values | {"sql": looked.sql} if show_sql else values


def _sentence(status: SchemaStatus, *, check: bool) -> str:
    if status.found > status.wanted:
        return (
            f"the tables are version {status.found}, this code knows up to {status.wanted}: upgrade duetime"
        )
    if not status.pending:
        return f"the tables are up to date, version {status.found}"
    steps = ", ".join(status.pending)
    return f"missing: {steps}; run `duetime migrate`" if check else f"applied: {steps}"
