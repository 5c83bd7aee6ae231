"""`duetime jobs`."""

from __future__ import annotations

import asyncio
from datetime import datetime

import click
import msgspec

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.job_moves import cancel, release, rerun, snooze
from duetime.cli.tail import logs, tail
from duetime.cli.text import relative, say, say_json, say_lines, say_table, shortened
from duetime.model.instants import to_datetime
from duetime.model.job import AttemptRecord
from duetime.model.states import State
from duetime.scheduler import JobRecord

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
@click.option("--queue", help="Only jobs in this queue.")
@click.option("--limit", type=int, default=50, show_default=True, help="At most so many, up to 1000.")
@click.option("--before", metavar="ID", help="Only jobs older than this one: the last id of the page before.")
@options.as_json
def list_jobs(
    *,
    url: str | None,
    namespace: str,
    task: str | None,
    state: str | None,
    queue: str | None,
    limit: int,
    before: str | None,
    as_json: bool,
) -> None:
    """List jobs, newest first."""

    async def read() -> tuple[list[JobRecord], datetime]:
        async with client(url, namespace) as scheduler:
            found = await scheduler.jobs.list(task=task, state=state, queue=queue, before=before, limit=limit)
            return found, to_datetime(await scheduler.store.now())

    found, now = asyncio.run(read())
    if as_json:
        say_json([_values(job) for job in found])
        return
    if not found:
        say("no jobs")
        return
    say_table(("ID", "TASK", "STATE", "WHEN", "TRY", "ERROR"), (_row(job, now) for job in found))
    if len(found) == limit:
        say(f"more: duetime jobs list --before {found[-1].id}")


@jobs.command()
@options.database
@click.argument("job_id", metavar="ID")
@options.as_json
def show(*, url: str | None, namespace: str, job_id: str, as_json: bool) -> None:
    """Show all that is known about a job, earlier tries included."""

    async def read() -> tuple[JobRecord, list[AttemptRecord]]:
        async with client(url, namespace) as scheduler:
            return await scheduler.jobs.get(job_id), await scheduler.store.attempts(job_id)

    job, attempts = asyncio.run(read())
    if as_json:
        say_json(_values(job) | {"attempts": [_attempt_values(attempt) for attempt in attempts]})
        return
    for name, value in _values(job).items():
        if name != "traceback" and value is not None:
            say(f"{name:16} {value if isinstance(value, str) else msgspec.json.encode(value).decode()}")
    for number, attempt in enumerate(attempts, 1):
        say(
            f"try {number:<12} {to_datetime(attempt.ended_at).isoformat()} {attempt.outcome}: {attempt.error or ''}"
        )
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


def _attempt_values(attempt: AttemptRecord) -> dict[str, object]:
    started = attempt.started_at
    return {
        "fence": attempt.fence,
        "worker": attempt.worker,
        "due_at": to_datetime(attempt.due_at).isoformat(),
        "started_at": None if started is None else to_datetime(started).isoformat(),
        "ended_at": to_datetime(attempt.ended_at).isoformat(),
        "outcome": attempt.outcome,
        "error": attempt.error,
        "traceback": attempt.traceback,
    }
