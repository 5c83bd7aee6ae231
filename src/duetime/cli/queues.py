"""`duetime queues`: list, pause, resume and empty queues."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import click
import msgspec

from duetime.cli.loading import client
from duetime.cli.options import database_options, dry_run_option, json_option
from duetime.cli.output import confirm, relative_time, say, say_json, say_table, shortened
from duetime.model.limits import Rate
from duetime.model.queues import Registry
from duetime.model.text import check_name
from duetime.model.time import describe_duration, to_datetime
from duetime.scheduler.records import QueueRecord
from duetime.scheduler.scheduler import Scheduler

_REASON_WIDTH = 40


@click.group()
def queues() -> None:
    """List, pause, resume and empty queues.

    \b
      duetime queues list
      duetime queues pause mail --reason "the relay is down"
      duetime queues purge mail --dry-run
    """  # noqa: D301


@queues.command("list")
@database_options
@json_option
def list_queues(*, url: str | None, namespace: str, as_json: bool) -> None:
    """List queues with how many jobs are where.

    A number with a plus was counted in part: there are more than 10,000 of that kind.
    """

    async def read() -> tuple[list[QueueRecord], datetime]:
        async with client(url, namespace) as scheduler:
            return await scheduler.queues.list(), to_datetime(await scheduler.store.now())

    found, now = asyncio.run(read())
    if as_json:
        say_json([_queue_values(queue) for queue in found])
    elif found:
        head = ("QUEUE", *(registry.upper() for registry in Registry), "LIMIT", "PAUSED")
        say_table(head, (_queue_row(queue, now) for queue in found))
    else:
        say("no queues")


@queues.command()
@database_options
@click.argument("names", metavar="QUEUE...", nargs=-1, required=True)
@click.option("--reason", help="Kept with the queue, for others to read.")
@json_option
def pause(
    *, url: str | None, namespace: str, names: tuple[str, ...], reason: str | None, as_json: bool
) -> None:
    """Hand out nothing more from queues; what workers have still runs."""

    async def act(scheduler: Scheduler, name: str) -> str:
        await scheduler.queues.pause(name, reason=reason)
        return "paused"

    _answer_for_each(url, namespace, names, act, as_json=as_json)


@queues.command()
@database_options
@click.argument("names", metavar="QUEUE...", nargs=-1, required=True)
@json_option
def resume(*, url: str | None, namespace: str, names: tuple[str, ...], as_json: bool) -> None:
    """Hand out jobs of queues again."""

    async def act(scheduler: Scheduler, name: str) -> str:
        await scheduler.queues.resume(name)
        return "resumed"

    _answer_for_each(url, namespace, names, act, as_json=as_json)


@queues.command()
@database_options
@click.argument("name", metavar="QUEUE")
@click.option("--reason", default="purged", show_default=True, help="Kept with each job.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@dry_run_option
@json_option
def purge(
    *, url: str | None, namespace: str, name: str, reason: str, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Cancel all jobs of a queue that no worker has yet.

    They stay on record as cancelled, with the reason. On a terminal the name of the queue is asked for; elsewhere
    --yes is needed.
    """
    check_name(name, what="queue")
    if not (yes or dry_run):
        confirm(name, what="name of the queue", done="purged")

    async def act() -> QueueRecord | int:
        async with client(url, namespace) as scheduler:
            if not dry_run:
                return await scheduler.queues.purge(name, confirm=name, reason=reason)
            found = [queue for queue in await scheduler.queues.list() if queue.name == name]
            return found[0] if found else 0

    done = asyncio.run(act())
    if isinstance(done, int):
        count, shown = done, str(done)
    else:
        count = done.queued + done.scheduled
        more = done.at_least & {Registry.QUEUED, Registry.SCHEDULED}
        shown = f"{count}+" if more else str(count)
    if as_json:
        say_json({"queue": name, "would_purge" if dry_run else "purged": count})
    else:
        say(f"{name}: {shown} job(s) {'would be ' if dry_run else ''}cancelled")


def _answer_for_each(
    url: str | None,
    namespace: str,
    names: tuple[str, ...],
    act: Callable[[Scheduler, str], Awaitable[str]],
    *,
    as_json: bool,
) -> None:
    """Do the same to all queues, or to none when a name is not one."""
    for name in names:
        check_name(name, what="queue")

    async def do() -> dict[str, str]:
        async with client(url, namespace) as scheduler:
            return {name: await act(scheduler, name) for name in names}

    answers = asyncio.run(do())
    if as_json:
        say_json(answers)
        return
    for name, answer in answers.items():
        say(f"{name}  {answer}")


def _queue_row(queue: QueueRecord, now: datetime) -> tuple[str, ...]:
    values = _queue_values(queue)
    numbers = (f"{values[name]}{'+' if name in queue.at_least else ''}" for name in Registry)
    paused = "" if queue.paused_at is None else f"{relative_time(queue.paused_at, now)}"
    if queue.paused_reason:
        paused += f": {shortened(queue.paused_reason, _REASON_WIDTH)}"
    limit = " ".join(str(values[name]) for name in ("limit", "rate") if values[name] is not None)
    return (queue.name, *numbers, limit, paused)


def _rate_text(rate: Rate) -> str:
    return f"{rate.count}/{describe_duration(rate.period)}"


def _queue_values(queue: QueueRecord) -> dict[str, object]:
    """Return a queue as JSON values."""
    values: dict[str, object] = msgspec.to_builtins(queue)
    values["at_least"] = sorted(queue.at_least)
    values["limit"] = None if queue.limit is None else queue.limit.most
    values["rate"] = None if queue.rate is None else _rate_text(queue.rate)
    return values
