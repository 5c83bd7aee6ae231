"""`duetime locks`: list and release the locks that people take."""

from __future__ import annotations

import click
import msgspec

from duetime.cli.command import PendingAnswer, client_command, store_time
from duetime.cli.output import Answer, confirm, relative_time, table_or
from duetime.scheduler.scheduler import Scheduler


@click.group()
def locks() -> None:
    """List locks that are held, and release what was left behind.

    \b
      duetime locks list
      duetime locks release reindex
    """  # noqa: D301


@locks.command("list", short_help="List the locks that are held.")
@client_command
async def list_locks(scheduler: Scheduler) -> Answer:
    """List the locks that are held: who holds what since when, and when each ends unless it is renewed."""
    found, now = await scheduler.locks.list(), await store_time(scheduler)
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
@client_command
@click.argument("name", metavar="LOCK")
@click.option("--yes", is_flag=True, help="Do it without asking.")
def release(scheduler: Scheduler, *, name: str, yes: bool) -> PendingAnswer:
    """Release a lock that is held; its holder loses it, and another one may take it.

    The holder notices when it renews the lock next. On a terminal the name of the lock is asked for; elsewhere --yes is needed.
    """
    if not yes:
        confirm(name, what="name of the lock", done="released")
    return _release(scheduler, name)


async def _release(scheduler: Scheduler, name: str) -> Answer:
    word = "released" if await scheduler.locks.release(name) else "not held"
    return Answer(values={name: word}, lines=[f"{name}  {word}"])
