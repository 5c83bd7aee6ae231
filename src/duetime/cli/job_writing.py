"""`duetime jobs edit`, `delete` and `purge`: jobs changed, and removed by id or by what they have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any, Unpack

import click

from duetime.cli.command import (
    PendingAnswer,
    all_options,
    by_option,
    client_command,
    dry_run_option,
    job_ids_argument,
    option,
)
from duetime.cli.ids import whole_job_ids
from duetime.cli.output import Answer, ExitCode, ask_each, check_interactive, confirm, say
from duetime.model.job import JobKind
from duetime.model.queues import Registry
from duetime.model.states import State
from duetime.model.text import counted
from duetime.scheduler.jobs import DeletedJobs, JobCriteria
from duetime.scheduler.records import json_or_text
from duetime.scheduler.scheduler import Scheduler


def _or_none(
    _ctx: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Return what was given; an option that may be repeated is else an empty list."""
    return given or None


criteria_options = all_options(
    click.option("--task", help="Only jobs of this task."),
    click.option(
        "--state",
        type=click.Choice([*map(str, State)]),
        multiple=True,
        callback=_or_none,
        help="Only jobs in this state; may be repeated.",
    ),
    click.option("--registry", type=click.Choice([*map(str, Registry)]), help="Only jobs in this registry."),
    click.option("--queue", help="Only jobs in this queue."),
    click.option("--schedule", help="Only jobs of this schedule."),
    click.option(
        "--kind",
        type=click.Choice([*map(str, JobKind)]),
        help="Only what schedules made, or what they did not.",
    ),
    click.option("--key", help="Only jobs with this key."),
    click.option("--tag", help="Only jobs with this tag."),
    option("--since", "WHEN", "Only jobs enqueued in the last 2h, or since 2030-01-31T09:00:00Z."),
    option("--until", "WHEN", "Only jobs enqueued before 2h ago, or before 2030-01-31T09:00:00Z."),
)
"""Which jobs are meant."""
NO_JOB = "there is no such job"
_yes_option = click.option("--yes", is_flag=True, help="Do it without asking.")


@click.command()
@client_command
@job_ids_argument
@option("--at", "MOMENT", "Run them then; ISO 8601 with a zone.")
@option("--delay", "DURATION", "Run them this long from now.")
@option("--queue", "NAME", "Move them to this queue.")
@option("--priority", "N", "From 0 (first) to 9.")
@by_option
async def edit(scheduler: Scheduler, *, job_ids: tuple[str, ...], **given: Any) -> Answer:
    """Change when or where jobs run that wait.

    `-` reads ids from standard input. Exits with 3 when a job does not exist, and else with 1 when one has been claimed
    by a worker or has ended.

    \b
      duetime jobs edit 0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10 --at 2030-01-31T09:00:00Z
      duetime jobs edit 0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10 --delay 0s --priority 0
    """  # noqa: D301
    changes: Any = {name: value for name, value in given.items() if value is not None}
    texts = {"unknown": NO_JOB, "finished": "has ended", "active": "is with a worker"}
    ids = await whole_job_ids(scheduler, job_ids)
    return await ask_each(ids, partial(scheduler.jobs.edit, **changes), texts, "changed")


@click.command(short_help="Remove jobs that wait or have ended.")
@client_command
@job_ids_argument
@_yes_option
@by_option
@dry_run_option
def delete(
    scheduler: Scheduler, *, job_ids: tuple[str, ...], yes: bool, by: str | None, dry_run: bool
) -> PendingAnswer:
    """Remove jobs that wait or have ended, with all about them.

    On a terminal the id is asked for, or how many there are; elsewhere --yes is needed. `-` reads ids from standard
    input. Exits with 3 when a job does not exist, and else with 1 when a worker has one.
    """
    if not (yes or dry_run):
        what = "id of the job" if len(job_ids) == 1 else "number of jobs"
        confirm(job_ids[0] if len(job_ids) == 1 else str(len(job_ids)), what=what, done="deleted")

    async def act(job_id: str) -> str:
        if not dry_run:
            await scheduler.jobs.delete(job_id, by=by)
            return "deleted"
        return "active" if (await scheduler.jobs.get(job_id)).state is State.RUNNING else "would be deleted"

    async def work() -> Answer:
        texts = {"unknown": NO_JOB, "active": "is with a worker; cancel it first"}
        return await ask_each(await whole_job_ids(scheduler, job_ids), act, texts)

    return work()


def _read_argument(text: str) -> tuple[str, object]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise click.BadParameter(f"{text!r} is no NAME=VALUE, such as user_id=17")
    return name, json_or_text(value)


@click.command(short_help="Remove jobs that meet all conditions.")
@client_command
@criteria_options
@option(
    "--argument",
    "NAME=VALUE",
    "Only jobs with this argument, as JSON or else as text; may be repeated.",
    type=_read_argument,
    multiple=True,
)
@_yes_option
@by_option
@dry_run_option
def purge(
    scheduler: Scheduler,
    *,
    argument: tuple[tuple[str, object], ...],
    yes: bool,
    by: str | None,
    dry_run: bool,
    **criteria: Unpack[JobCriteria],
) -> PendingAnswer:
    """Remove all jobs that meet every condition and wait or have ended, with all that is known about them.

    Those that workers have stay, and it exits with 1: cancel them, and purge again. On a terminal it is said how many
    would go, and that number is asked for; elsewhere --yes is needed.

    \b
      duetime jobs purge --tag customer-17 --dry-run
      duetime jobs purge --task shop.send_email --argument user_id=17 --yes
    """  # noqa: D301
    arguments = dict(argument)
    if len(arguments) < len(argument):
        raise click.UsageError("an argument is given twice; a job has one value of each")
    if not (yes or dry_run):
        check_interactive()
        with closing(scheduler.sync):
            found = scheduler.sync.jobs.delete_many(arguments=arguments, dry_run=True, **criteria)
        for line in _purge_lines(found, dry_run=True):
            say(line, err=True)
        confirm(str(found.deleted), what="number of jobs to delete", done="deleted")

    async def work() -> Answer:
        done = await scheduler.jobs.delete_many(arguments=arguments, dry_run=dry_run, by=by, **criteria)
        return Answer(
            values={**done._asdict(), "dry_run": dry_run},
            lines=_purge_lines(done, dry_run=dry_run),
            code=ExitCode.FAILURE if done.running else ExitCode.OK,
        )

    return work()


def _purge_lines(found: DeletedJobs, *, dry_run: bool) -> Iterator[str]:
    yield f"{'would delete' if dry_run else 'deleted'} {counted(found.deleted, 'job')}"
    if found.running:
        yield f"{counted(found.running, 'job')} with a worker; cancel what runs, and purge again"
