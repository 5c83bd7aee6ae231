"""`duetime reopen`."""

from __future__ import annotations

import asyncio

import click

from duetime.cli import options
from duetime.cli.database import connected
from duetime.cli.text import say, say_json


@click.command(short_help="Work again on a database that was copied elsewhere.")
@click.argument("database", metavar="[URL]", required=False)
@options.database
@options.as_json
def reopen(*, database: str | None, url: str | None, namespace: str, as_json: bool) -> None:
    """Let workers and producers in again after `duetime copy` from this database.

    What waited when it was copied waits in both places, and runs in both if workers run in both. Processes that were
    refused before must be started again.

    \b
      duetime reopen sqlite:///jobs.db
    """  # noqa: D301

    async def run() -> str | None:
        async with connected(database or url, namespace) as store:
            moved = (await store.schema_status()).moved
            if moved is not None:
                await store.set_moved(None)
            return moved

    moved = asyncio.run(run())
    if as_json:
        say_json({"reopened": moved is not None, "moved": moved})
    else:
        say("nothing has kept workers off it" if moved is None else f"open again, though {moved}")
