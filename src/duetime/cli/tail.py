"""`duetime jobs logs` and `duetime jobs tail`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

import click

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.failures import ExitCode
from duetime.cli.following import Follower, Latest, News, mark, moment
from duetime.cli.text import say, say_json, say_json_line, say_lines, shortened
from duetime.model.instants import to_datetime
from duetime.model.reports import LogPart
from duetime.model.states import State
from duetime.model.stored import StoredJob

T = TypeVar("T")

_LOOK = 0.5
"""Seconds between looks."""
_ERROR_WIDTH = 100


@click.command()
@options.database
@click.argument("job_id", metavar="ID")
@click.option("--follow", "-f", is_flag=True, help="Go on until the job has ended.")
@options.as_json
def logs(*, url: str | None, namespace: str, job_id: str, follow: bool, as_json: bool) -> None:
    """Print what a job has logged, try by try.

    With --follow, --json prints one line of JSON for each part.
    """

    async def read() -> Iterable[LogPart]:
        async with client(url, namespace) as scheduler:
            return await scheduler.jobs.logs(job_id)

    async def go_on() -> None:
        async with client(url, namespace) as scheduler:
            follower, printer = Follower(scheduler.store, job_id), LogPrinter(as_json=as_json)
            while True:
                news = await follower.look()
                printer.print(news.logs)
                if news.job.state.terminal:
                    return
                await asyncio.sleep(_LOOK)

    if follow:
        _until_stopped(go_on())
    elif as_json:
        say_json([_log_values(part) for part in asyncio.run(read())])
    else:
        LogPrinter(as_json=False).print(asyncio.run(read()))


@click.command()
@options.database
@click.argument("job_id", metavar="[ID]", required=False)
@options.as_json
def tail(*, url: str | None, namespace: str, job_id: str | None, as_json: bool) -> None:
    """Follow a job until it ends, or all jobs as they start and end.

    With ID it prints the job's state, progress and log, and exits with 0 if the job succeeds and with 1 if not.
    Without ID it goes on until Ctrl-C; it looks twice a second, so that of a short job it shows only the end, and
    of a short one that was enqueued long ago perhaps nothing. --json prints one line of JSON each.
    """

    async def one(job_id: str) -> State:
        async with client(url, namespace) as scheduler:
            follower, printer = Follower(scheduler.store, job_id), LogPrinter(as_json=as_json)
            while True:
                news = await follower.look()
                _print_news(news, printer, as_json=as_json)
                if news.job.state.terminal:
                    return news.job.state
                await asyncio.sleep(_LOOK)

    async def everything() -> None:
        async with client(url, namespace) as scheduler:
            latest = Latest(scheduler.store)
            while True:
                for job in await latest.look():
                    _print_job(job, as_json=as_json)
                await asyncio.sleep(_LOOK)

    if job_id is None:
        _until_stopped(everything())
    elif _until_stopped(one(job_id)) is not State.SUCCEEDED:
        raise click.exceptions.Exit(ExitCode.FAILURE)


class LogPrinter:
    """Prints parts of a log, with a line where another try begins."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._fence: int | None = None
        self._expected = 1

    def print(self, parts: Iterable[LogPart]) -> None:
        """Print parts that follow those printed before."""
        for part in parts:
            if self._as_json:
                say_json_line(_log_values(part))
                continue
            if part.fence != self._fence:
                if self._fence is not None:
                    say(f"== try {part.attempt}")
                self._fence, self._expected = part.fence, 1
            if missing := part.line - self._expected:
                say(f"… {missing} lines are missing here …")
            self._expected = part.past
            say_lines(part.text)


def _print_news(news: News, printer: LogPrinter, *, as_json: bool) -> None:
    """Print a job's new stage, progress and log in an order that reads well: an end comes last."""
    ended = news.job.state.terminal
    if news.moved and not ended:
        _print_job(news.job, as_json=as_json)
    printer.print(news.logs)
    if news.progressed:
        _print_progress(news.job, as_json=as_json)
    if news.moved and ended:
        _print_job(news.job, as_json=as_json)


def _print_job(job: StoredJob, *, as_json: bool) -> None:
    state, why = mark(job).state, shortened(job.error or job.reason or "", _ERROR_WIDTH)
    at = to_datetime(moment(job)).isoformat(timespec="milliseconds")
    if as_json:
        told = {"kind": "state", "id": job.id, "task": job.task, "state": state, "attempt": job.attempt}
        say_json_line(told | {"at": at, "error": job.error, "reason": job.reason})
    else:
        say(f"== {at} {job.id} {job.task} {state}, try {job.attempt}{why and f': {why}'}")


def _print_progress(job: StoredJob, *, as_json: bool) -> None:
    if as_json:
        said = {"progress": job.progress, "note": job.progress_note}
        say_json_line({"kind": "progress", "id": job.id} | said)
    else:
        say(f"== {job.progress or 0:.0%} {job.progress_note or ''}".rstrip())


def _log_values(part: LogPart) -> dict[str, object]:
    return {"kind": "log", "id": part.job_id, "attempt": part.attempt, "line": part.line, "text": part.text}


def _until_stopped(work: Coroutine[Any, Any, T]) -> T | None:
    """Run to the end, or until Ctrl-C, which is how one leaves."""
    with contextlib.suppress(KeyboardInterrupt):
        return asyncio.run(work)
    return None
