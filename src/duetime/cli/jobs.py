"""`duetime jobs`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

import click
import msgspec

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.job_moves import cancel, release, rerun, snooze
from duetime.cli.tail import logs, tail
from duetime.cli.text import relative, say, say_json, say_lines, say_table, shortened
from duetime.model.instants import to_datetime
from duetime.model.registries import Registry
from duetime.model.states import State
from duetime.scheduler.pages import JobQuery, Page
from duetime.scheduler.records import AttemptRecord, JobRecord

_ERROR_WIDTH = 60


@click.group()
def jobs() -> None:
    """List, show and follow jobs, cancel them, run them again.

    \b
      duetime jobs list --state failed
      duetime jobs show 0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10
      duetime jobs tail 0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10
      duetime jobs cancel 0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10
      duetime jobs rerun 0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10
    """  # noqa: D301


for command in (logs, tail, cancel, rerun, snooze, release):
    jobs.add_command(command)


@jobs.command("list")
@options.database
@click.option("--task", help="Only jobs of this task.")
@click.option("--state", type=click.Choice([str(state) for state in State]), help="Only jobs in this state.")
@click.option(
    "--registry", type=click.Choice([str(name) for name in Registry]), help="Only jobs in this registry."
)
@click.option("--queue", help="Only jobs in this queue.")
@click.option("--schedule", help="Only jobs of this schedule.")
@click.option("--key", help="Only jobs with this key.")
@click.option("--tag", help="Only jobs with this tag.")
@click.option(
    "--since",
    type=options.moment_or_duration,
    metavar="WHEN",
    help="Only jobs enqueued in the last 2h, or since 2030-01-31T09:00:00Z.",
)
@click.option("--limit", type=int, default=50, show_default=True, help="At most so many, up to 1000.")
@click.option("--cursor", help="The next page, as the page before has told it.")
@options.as_json
def list_jobs(*, url: str | None, namespace: str, as_json: bool, **query: Unpack[JobQuery]) -> None:
    """List jobs, newest first."""

    async def read() -> tuple[Page[JobRecord], datetime]:
        async with client(url, namespace) as scheduler:
            return await scheduler.jobs.list(**query), to_datetime(await scheduler.store.now())

    found, now = asyncio.run(read())
    if as_json:
        say_json([_values(job) for job in found])
    elif found:
        say_table(("ID", "TASK", "STATE", "WHEN", "TRY", "ERROR"), (_row(job, now) for job in found))
    else:
        say("no jobs")
    if found.cursor is not None:
        # Beside JSON, which has no place for it.
        say(f"more: --cursor {found.cursor}", err=as_json)


@jobs.command()
@options.database
@click.argument("job_id", metavar="ID")
@options.as_json
def show(*, url: str | None, namespace: str, job_id: str, as_json: bool) -> None:
    """Show all that is known about a job, earlier tries included."""

    async def read() -> tuple[JobRecord, Sequence[AttemptRecord]]:
        async with client(url, namespace) as scheduler:
            return await scheduler.jobs.get(job_id), await scheduler.jobs.attempts(job_id)

    job, attempts = asyncio.run(read())
    if as_json:
        say_json(_values(job) | {"attempts": msgspec.to_builtins(attempts)})
        return
    for name, value in _values(job).items():
        if name != "traceback" and value is not None:
            say(f"{name:16} {value if isinstance(value, str) else msgspec.json.encode(value).decode()}")
    for number, attempt in enumerate(attempts, 1):
        when = attempt.ended_at or attempt.started_at or attempt.due_at
        wrong = "" if attempt.error is None else f": {attempt.error}"
        say(f"try {number:<12} {when.isoformat()} {attempt.outcome}{wrong}")
    if job.traceback is not None:
        say("")
        say_lines(job.traceback)


def _row(job: JobRecord, now: datetime) -> tuple[str, str, str, str, str, str]:
    wrong = shortened(job.error or job.reason or "", _ERROR_WIDTH)
    return job.id, job.task, job.state, _when(job, now), str(job.attempt), wrong


def _when(job: JobRecord, now: datetime) -> str:
    if job.finished_at is not None:
        return f"ended {relative(job.finished_at, now)}"
    if job.state is State.RUNNING and job.started_at is not None:
        return f"started {relative(job.started_at, now)}"
    return f"due {relative(job.due_at, now)}"


def _values(job: JobRecord) -> dict[str, object]:
    """Return a job as JSON values, its lateness in seconds."""
    values: dict[str, object] = msgspec.to_builtins(job)
    values["lateness"] = None if job.lateness is None else job.lateness.total_seconds()
    return values
