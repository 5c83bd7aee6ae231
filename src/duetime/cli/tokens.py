"""`duetime tokens`: make, list and revoke tokens for the HTTP API; `duetime api` serves it."""

from __future__ import annotations

from datetime import datetime, timedelta

import click
import msgspec

from duetime.cli.command import by_option, client, client_command, database_options, option, store_time
from duetime.cli.output import Answer, relative_time, say, table_or
from duetime.errors import MissingDriver
from duetime.model.stored.credentials import Role
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.tokens import TokenRecord

_LAST_PORT = 65_535


@click.group()
def tokens() -> None:
    """Make, list and revoke tokens for the HTTP API.

    \b
      duetime tokens add ci --role operator --queue mail --expires 30d
      duetime tokens list
      duetime tokens revoke ci
    """  # noqa: D301


@tokens.command(short_help="Make a token, and print it this once.")
@client_command
@click.argument("name")
@click.option(
    "--role", type=click.Choice([role.value for role in Role]), default="viewer", help="What it may do."
)
@click.option(
    "--queue", "queues", multiple=True, metavar="NAME", help="Good for this queue only; may be repeated."
)
@option("--expires", "DURATION", "How long it is good.", default="90d")
@click.option("--forever", is_flag=True, help="It is good until it is revoked.")
@by_option
async def add(
    scheduler: Scheduler,
    *,
    name: str,
    role: str,
    queues: tuple[str, ...],
    expires: timedelta,
    forever: bool,
    by: str | None,
) -> Answer:
    """Make a token and print it, which is the only time that it is shown.

    NAME is kept with every change that is made with it. What is sent is: Authorization: Bearer TOKEN
    """
    lasts = None if forever else expires
    new = await scheduler.tokens.add(name, role=role, queues=queues or None, expires=lasts, by=by)
    values = {"id": new.id, "name": new.name, "token": new.secret}
    return Answer(
        values=values, lines=[new.secret], notes=["kept nowhere; revoke it with: duetime tokens revoke NAME"]
    )


@tokens.command("list", short_help="List tokens without their secrets.")
@client_command
async def list_tokens(scheduler: Scheduler) -> Answer:
    """List tokens without their secrets, newest first; those that are over stay for a while."""
    found, now = await scheduler.tokens.list(), await store_time(scheduler)
    head = ("ID", "NAME", "KIND", "ROLE", "QUEUES", "STATE", "EXPIRES", "USED")
    return Answer(
        values=msgspec.to_builtins(found),
        lines=table_or("no tokens", head, (_row(token, now) for token in found)),
    )


@tokens.command()
@client_command
@click.argument("token", metavar="NAME|ID")
@by_option
async def revoke(scheduler: Scheduler, *, token: str, by: str | None) -> Answer:
    """Accept a token no more, nor the sessions that were begun with it.

    Processes that have just seen it take up to five seconds to notice.
    """
    await scheduler.tokens.revoke(token, by=by)
    return Answer(values={token: "revoked"}, lines=[f"{token}  revoked"])


def _row(token: TokenRecord, now: datetime) -> tuple[str, ...]:
    over = token.expires_at is not None and token.expires_at <= now
    state = "revoked" if token.revoked_at is not None else "expired" if over else "good"
    return (
        token.id,
        token.name,
        token.kind,
        token.role,
        "all" if token.queues is None else ",".join(token.queues),
        state,
        "never" if token.expires_at is None else relative_time(token.expires_at, now),
        "never" if token.used_at is None else relative_time(token.used_at, now),
    )


@click.command(short_help="Serve the HTTP API.")
@database_options
@option("--host", "ADDRESS", "The address to listen on.", default="127.0.0.1")
@option("--port", "N", "The port; 0 for any that is free.", default=8700, type=click.IntRange(0, _LAST_PORT))
@click.option(
    "--name", "hosts", multiple=True, metavar="HOST", help="A name that it answers to; may be repeated."
)
def api(*, url: str | None, namespace: str, host: str, port: int, hosts: tuple[str, ...]) -> None:
    """Serve the HTTP API of a database, without the code of its tasks, until stopped.

    On this machine alone it prints a link by which one signs in once. Other addresses need tokens first, and a proxy
    for HTTPS in front. Needs duetime[web].
    """
    try:
        from duetime.web.standalone import serve
    except ModuleNotFoundError as error:
        raise MissingDriver(f"the API needs {error.name}; run: pip install 'duetime[web]'") from None
    serve(client(url, namespace), host=host, port=port, hosts=hosts, say=say)
