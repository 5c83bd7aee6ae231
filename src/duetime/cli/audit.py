"""`duetime audit`: who did what."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import click
import msgspec

from duetime.cli.command import client_command, option, store_time
from duetime.cli.ids import meant_worker, whole_job_id
from duetime.cli.output import Answer, relative_time, shortened, table_or
from duetime.cli.schedules import detail_text, detail_values
from duetime.scheduler.audit import AuditRecord
from duetime.scheduler.scheduler import Scheduler

_DETAIL_WIDTH = 60


@click.command(short_help="Tell who changed what.")
@client_command
@option("--schedule", "NAME", "What was done to this schedule.")
@option("--job", "ID", "What was done to this job.")
@option("--queue", "NAME", "What was done to this queue.")
@option("--worker", "ID", "What this worker was told.")
@click.option("--limit", type=int, default=50, help="At most this many, up to 1000.")
@click.option("--cursor", help="The next page: what the page before has printed at its end.")
async def audit(
    scheduler: Scheduler,
    *,
    schedule: str | None,
    job: str | None,
    queue: str | None,
    worker: str | None,
    limit: int,
    cursor: str | None,
) -> Answer:
    """List who changed what, newest first: schedules, jobs, queues and workers, or one of them.

    \b
      duetime audit --limit 20
      duetime audit --queue mail
    """  # noqa: D301
    job = job and await whole_job_id(scheduler, job)
    worker = worker and meant_worker(await scheduler.workers.list(), worker).id
    found = await scheduler.audit.list(
        schedule=schedule, job=job, queue=queue, worker=worker, limit=limit, cursor=cursor
    )
    now, head = await store_time(scheduler), ("WHEN", "WHO", "VERB", "WHAT", "DETAIL")
    more = [] if found.cursor is None else [f"more: --cursor {found.cursor}"]
    return Answer(
        values=[msgspec.to_builtins(replace(one, detail=detail_values(one.detail))) for one in found],
        lines=(*table_or("nothing was done", head, (_row(one, now) for one in found)), *more),
        # JSON has no place for the cursor.
        json_notes=more,
    )


def _row(one: AuditRecord, now: datetime) -> tuple[str, ...]:
    detail = shortened(detail_text(one.detail), _DETAIL_WIDTH)
    return relative_time(one.at, now), one.who, one.verb, f"{one.kind} {one.name}", detail
