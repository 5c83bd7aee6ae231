"""`duetime stats`: how tasks, queues and schedules have fared over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import click
import msgspec

from duetime.cli.command import client_command, option, store_time
from duetime.cli.output import Answer, CommandFailure, relative_time, shortened, table_or
from duetime.model.time import SECOND, describe_duration
from duetime.scheduler.failures import FailureGroup
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.stats import Figures, Spread, Statistics

_BARS: Final = "▁▂▃▄▅▆▇█"
_ERROR_WIDTH: Final = 60


@click.command(short_help="Tell how runs have fared over time.")
@client_command
@option("--task", "NAME", "Of this task.")
@option("--queue", "NAME", "Of this queue.")
@option("--schedule", "NAME", "Of this schedule; by hours or days.")
@option("--since", "WHEN", "From this moment on, or from so long ago; else from a day ago.")
@option("--until", "WHEN", "Up to this moment, or to so long ago; else up to now.")
@option("--step", "DURATION", "How long each point is; else about a hundred points.")
@option("--new-since", "RELEASE", "Instead, group the failures that are new since this release.")
async def stats(
    scheduler: Scheduler,
    *,
    task: str | None,
    queue: str | None,
    schedule: str | None,
    since: datetime | timedelta | None,
    until: datetime | timedelta | None,
    step: timedelta | None,
    new_since: str | None,
) -> Answer:
    """Tell how many runs ended how, and how long they waited and took; of everything unless one thing is named.

    A worker that is killed takes the counts of its last few seconds with it.

    \b
      duetime stats
      duetime stats --task mail.send --since 7d --step 1h
      duetime stats --new-since 1.4.2
    """  # noqa: D301
    named = {"--task": task, "--queue": queue, "--schedule": schedule}
    if len(given := [name for name, value in named.items() if value is not None]) > 1:
        raise CommandFailure(f"name one thing, not {' and '.join(given)}")
    if new_since is not None:
        return _failures_answer(await scheduler.stats.new_failures(new_since))
    times: dict[str, Any] = {"since": "24h" if since is None else since, "until": until, "step": step}
    if schedule is not None:
        found = await scheduler.stats.schedules(schedule, **times)
    elif queue is not None:
        found = await scheduler.stats.queues(queue, **times)
    else:
        found = await scheduler.stats.tasks(task, **times)
    now = await store_time(scheduler)
    marks = (
        f"{relative_time(mark.at, now):>8}  {mark.verb} {mark.detail.get('release') or f'{mark.kind} {mark.name}'}"
        for mark in found.marks
    )
    return Answer(values=msgspec.to_builtins(found), lines=(*_lines(found), *marks))


def _lines(found: Statistics) -> Iterator[str]:
    step = describe_duration(round(found.step * SECOND))
    name = "everything" if found.name is None else f"{found.kind} {found.name}"
    yield f"{name}, from {found.since:%Y-%m-%d %H:%M} to {found.until:%Y-%m-%d %H:%M} UTC, by {step}"
    for outcome, count in found.total.outcomes.items():
        yield f"{outcome:12} {count:>9,}  {sparkline([point.outcomes.get(outcome, 0) for point in found.points])}"
    if not found.total.outcomes:
        yield "nothing has ended"
    spreads = [(what, getattr(found.total, what)) for what in ("wait", "run", "lateness")]
    rows = [_spread_row(what, spread, found.points) for what, spread in spreads if spread is not None]
    if rows:
        yield from table_or("", ("SECONDS", "MEAN", "P50", "P90", "P95", "P99", "P95 OVER TIME"), rows)


def _spread_row(what: str, spread: Spread, points: Sequence[Figures]) -> tuple[str, ...]:
    over_time = [one.p95 if (one := getattr(point, what)) is not None else 0 for point in points]
    values = (spread.mean, spread.p50, spread.p90, spread.p95, spread.p99)
    return what, *(f"{value:.3g}" for value in values), sparkline(over_time)


def sparkline(values: Sequence[float]) -> str:
    """Draw values as bars; nothing is a space, and the least that there is can be seen."""
    most = max(values, default=0)
    return "".join(" " if not value else _BARS[round(value / most * (len(_BARS) - 1))] for value in values)


def _failures_answer(groups: Sequence[FailureGroup]) -> Answer:
    rows = (
        (str(group.count), group.task, group.error_type or "", shortened(group.error or "", _ERROR_WIDTH))
        for group in groups
    )
    return Answer(
        values=msgspec.to_builtins(groups),
        lines=table_or("no new failures", ("COUNT", "TASK", "TYPE", "ERROR"), rows),
    )
