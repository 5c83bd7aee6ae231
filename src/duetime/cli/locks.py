"""`duetime locks`: list and release the locks that people take."""

from __future__ import annotations

import click
import msgspec

from duetime.cli.command import PendingAnswer, answer_command, client, database_options
from duetime.cli.output import Answer, confirm, relative_time, table_or
from duetime.model.time import to_datetime


@click.group()
def locks() -> None:
    """List locks that are held, and release what was left behind.

    \b
      duetime locks list
      duetime locks release reindex
    """  # noqa: D301


@locks.command("list", short_help="List the locks that are held.")
@database_options
@answer_command
async def list_locks(*, url: str | None, namespace: str) -> Answer:
    """List the locks that are held: who holds what since when, and when each ends unless it is renewed."""
    # A database that is used for locks alone has no other tables, and need not.
    kept = client(url, namespace).locks
    found, now = await kept.list(), to_datetime(await (await kept.reach()).store.now())
    rows = (
        (
            owner.name,
            owner.holder,
            relative_time(owner.since, now),
            relative_time(owner.deadline, now),
            str(owner.fence),
        )
        for owner in found
    )
    values = [{**msgspec.to_builtins(owner), "token": None} for owner in found]
    return Answer(
        values=values, lines=table_or("no locks", ("LOCK", "HOLDER", "SINCE", "ENDS", "FENCE"), rows)
    )


@locks.command(short_help="Take a lock from its holder.")
@database_options
@answer_command
@click.argument("name", metavar="LOCK")
@click.option("--yes", is_flag=True, help="Do it without asking.")
def release(*, url: str | None, namespace: str, name: str, yes: bool) -> PendingAnswer:
    """Release a lock that is held; its holder loses it, and another one may take it.

    The holder notices when it renews the lock next. On a terminal the name of the lock is asked for; elsewhere --yes is needed.
    """
    if not yes:
        confirm(name, what="name of the lock", done="released")
    return _release(url, namespace, name)


async def _release(url: str | None, namespace: str, name: str) -> Answer:
    word = "released" if await client(url, namespace).locks.release(name) else "not held"
    return Answer(values={name: word}, lines=[f"{name}  {word}"])
