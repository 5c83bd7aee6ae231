"""`duetime queues`: list, pause, resume and empty queues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial

import click
import msgspec

from duetime.cli.command import PendingAnswer, by_option, client_command, dry_run_option, store_time
from duetime.cli.output import Answer, answer_of_each, confirm, relative_time, shortened, table_or
from duetime.model.queues import Registry
from duetime.model.text import check_name, counted, did_you_mean
from duetime.model.time import describe_duration
from duetime.scheduler.explanations import unserved_jobs
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
@client_command
async def list_queues(scheduler: Scheduler) -> Answer:
    """List queues with how many jobs are where.

    A number with a plus was counted in part: there are more than 10,000 of that kind. Due jobs that no worker will take,
    because none serves their queue or knows their task, are told below.
    """
    found, now = await scheduler.queues.list(), await store_time(scheduler)
    head = ("QUEUE", *(registry.upper() for registry in Registry), "WORKERS", "LIMIT", "PAUSED")
    return Answer(
        values=[_queue_values(queue) for queue in found],
        lines=table_or("no queues", head, (_queue_row(queue, now) for queue in found)),
        notes=map(str, await unserved_jobs(scheduler.store)),
    )


@queues.command()
@client_command
@click.argument("names", metavar="QUEUE...", nargs=-1, required=True)
@click.option("--reason", help="Kept with the queue, for others to read.")
@by_option
async def pause(
    scheduler: Scheduler, *, names: tuple[str, ...], reason: str | None, by: str | None
) -> Answer:
    """Hand out nothing more from queues; what workers have still runs.

    A queue that nothing names is paused, too, for what comes later; a line says so, in case the name was misspelt.
    """
    return await _do_to_each(
        scheduler, names, lambda name: scheduler.queues.pause(name, reason=reason, by=by), "paused"
    )


@queues.command()
@client_command
@click.argument("names", metavar="QUEUE...", nargs=-1, required=True)
@by_option
async def resume(scheduler: Scheduler, *, names: tuple[str, ...], by: str | None) -> Answer:
    """Hand out jobs of queues again."""
    return await _do_to_each(scheduler, names, partial(scheduler.queues.resume, by=by), "resumed")


async def _do_to_each(
    scheduler: Scheduler, names: tuple[str, ...], act: Callable[[str], Awaitable[None]], done: str
) -> Answer:
    """Do the same to all queues, or to none when a name is not one; tell of those that nothing names."""
    for name in names:
        check_name(name, what="queue")
    known = {queue.name for queue in await scheduler.queues.list()}
    if not known.issuperset(names):
        known |= {schedule.queue for schedule in await scheduler.schedules.list()}
    notes = [_unknown_text(name, known) for name in names if name not in known]
    for name in names:
        await act(name)
    answer = answer_of_each(dict.fromkeys(names, done), {})
    return replace(answer, notes=notes, json_notes=notes)


def _unknown_text(name: str, known: Iterable[str]) -> str:
    offer = did_you_mean(name, known)
    return f"{name}: no job, schedule or living worker names this queue{offer and f'; {offer}'}"


@queues.command()
@client_command
@click.argument("name", metavar="QUEUE")
@click.option("--reason", default="purged", help="Kept with each job.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@by_option
@dry_run_option
def purge(
    scheduler: Scheduler, *, name: str, reason: str, yes: bool, by: str | None, dry_run: bool
) -> PendingAnswer:
    """Cancel all jobs of a queue that no worker has yet.

    They stay on record as cancelled, with the reason. On a terminal the name of the queue is asked for; elsewhere
    --yes is needed.
    """
    check_name(name, what="queue")
    if not (yes or dry_run):
        confirm(name, what="name of the queue", done="purged")
    return _purge_or_count(scheduler, name, None if dry_run else reason, by=by)


async def _purge_or_count(scheduler: Scheduler, name: str, reason: str | None, *, by: str | None) -> Answer:
    """Purge a queue, or without a reason count what would be purged; at least, if there are more."""
    if reason is not None:
        count = await scheduler.queues.purge(name, confirm=name, reason=reason, by=by)
        line = f"{name}: {counted(count, 'job')} cancelled"
        return Answer(values={"queue": name, "purged": count}, lines=[line])
    found = [queue for queue in await scheduler.queues.list() if queue.name == name]
    count = sum(queue.queued + queue.scheduled for queue in found)
    more = any(queue.at_least & {Registry.QUEUED, Registry.SCHEDULED} for queue in found)
    line = f"{name}: {'at least ' if more else ''}{counted(count, 'job')} would be cancelled"
    return Answer(values={"queue": name, "would_purge": count}, lines=[line])


def _queue_row(queue: QueueRecord, now: datetime) -> tuple[str, ...]:
    values = _queue_values(queue)
    numbers = (f"{values[name]}{'+' if name in queue.at_least else ''}" for name in Registry)
    paused = "" if queue.paused_at is None else relative_time(queue.paused_at, now)
    if queue.paused_reason:
        paused += f": {shortened(queue.paused_reason, _REASON_WIDTH)}"
    limit = " ".join(str(values[name]) for name in ("limit", "rate") if values[name] is not None)
    return (queue.name, *numbers, str(queue.workers), limit, paused)


def _queue_values(queue: QueueRecord) -> dict[str, object]:
    """Return a queue as JSON values."""
    values: dict[str, object] = msgspec.to_builtins(queue)
    values["at_least"] = sorted(queue.at_least)
    values["limit"] = None if queue.limit is None else queue.limit.most
    if queue.rate is not None:
        values["rate"] = f"{queue.rate.count}/{describe_duration(queue.rate.period)}"
    return values
