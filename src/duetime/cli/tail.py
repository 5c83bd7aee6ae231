"""`duetime jobs logs` and `tail`: follow jobs as they start, log and end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import Final, NamedTuple

import click

from duetime.cli.command import watch_command
from duetime.cli.output import ExitCode, say, say_json, say_lines, shortened
from duetime.model.job import JobId
from duetime.model.reports import LogPart
from duetime.model.states import State
from duetime.model.stored import StoredJob
from duetime.model.time import Instant, to_datetime
from duetime.scheduler.lookup import find_job
from duetime.scheduler.scheduler import Scheduler
from duetime.stores.base import JobFilter, Store

_JOBS_PER_LOOK: Final = 500
"""How many jobs that run, and how many of the newest ones, one look takes in."""
_LOOK_EVERY = 0.5
"""Seconds between looks."""
_TAIL_ERROR_WIDTH = 100


class JobStage(NamedTuple):
    """What tells one stage in the life of a job from the next."""

    state: State
    run: int


class JobNews(NamedTuple):
    """What one look at a job has found."""

    job: StoredJob
    moved: bool
    """Whether it has come to another stage."""
    progressed: bool
    logs: list[LogPart]


class JobFollower:
    """Looks at one job."""

    def __init__(self, store: Store, job_id: JobId) -> None:
        self._store = store
        self._job_id = job_id
        self._before: StoredJob | None = None
        self._read = (0, 0)

    async def look(self) -> JobNews:
        """Tell what is new; raises `JobNotFound`."""
        job = await find_job(self._store, self._job_id)
        # Read after the job: the last lines are written together with its end.
        logs = await self._store.logs(self._job_id, after=self._read)
        if logs:
            self._read = logs[-1].fence, logs[-1].line
        before, self._before = self._before, job
        told = None if before is None else (before.progress, before.progress_note)
        return JobNews(
            job,
            moved=before is None or stage_of(before) != stage_of(job),
            progressed=job.progress is not None and (job.progress, job.progress_note) != told,
            logs=logs,
        )

    async def until_ended(self) -> AsyncGenerator[JobNews]:
        """Yield what is new, look by look, until the job has ended."""
        while not (news := await self.look()).job.state.terminal:
            yield news
            await asyncio.sleep(_LOOK_EVERY)
        yield news


class RecentJobs:
    """Looks at the jobs that run, and at the newest ones."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._marks: dict[JobId, JobStage] = {}
        self._since: Instant | None = None

    async def look(self) -> list[StoredJob]:
        """Return the jobs that have started, gone back or ended since the last look, the latest last.

        The first look finds what runs.
        """
        if self._since is None:
            self._since = await self._store.now()
        running = await self._store.find(JobFilter(state=State.RUNNING, limit=_JOBS_PER_LOOK))
        newest = await self._store.find(JobFilter(limit=_JOBS_PER_LOOK))
        jobs = {job.id: job for job in (*newest, *running)}
        ran = [job_id for job_id, before in self._marks.items() if before.state is State.RUNNING]
        jobs |= {job.id: job for job in await self._store.get([i for i in ran if i not in jobs])}
        changed = [job for job in jobs.values() if self._is_news(job, self._since)]
        self._marks = {job.id: stage_of(job) for job in jobs.values()}
        return sorted(changed, key=lambda job: (stage_time(job), job.id))

    def _is_news(self, job: StoredJob, since: Instant) -> bool:
        now, before = stage_of(job), self._marks.get(job.id)
        if now == before:
            return False
        if now.state is State.PENDING:
            return before is not None and before.state is State.RUNNING
        return now.state is State.RUNNING or stage_time(job) >= since


def stage_of(job: StoredJob) -> JobStage:
    """Return the stage a job is at; one that is held for its due time still waits."""
    if job.state is State.RUNNING and job.started_at is None:
        return JobStage(State.PENDING, job.attempt)
    return JobStage(job.state, job.fence if job.state is State.RUNNING else job.attempt)


def stage_time(job: StoredJob) -> Instant:
    """Return when a job came to where it is: its end, else its start, else its due time."""
    return job.finished_at or job.started_at or job.due_at


@click.command()
@watch_command
@click.argument("job_id", metavar="ID")
@click.option("--follow", "-f", is_flag=True, help="Go on until the job has ended.")
async def logs(scheduler: Scheduler, *, job_id: str, follow: bool, as_json: bool) -> None:
    """Print what a job has logged, try by try.

    With --follow, --json prints one line of JSON for each part.
    """
    printer = LogPrinter(as_json=as_json)
    if follow:
        async for news in JobFollower(scheduler.store, job_id).until_ended():
            printer.print(news.logs)
        return
    found = await scheduler.jobs.logs(job_id)
    if as_json:
        say_json([_log_values(part) for part in found])
    else:
        printer.print(found)


@click.command()
@watch_command
@click.argument("job_id", metavar="[ID]", required=False)
async def tail(scheduler: Scheduler, *, job_id: str | None, as_json: bool) -> None:
    """Follow a job until it ends, or all jobs as they start and end.

    With ID it prints the job's state, progress and log, and exits with 0 if the job succeeds and with 1 if not.
    Without ID it goes on until Ctrl-C; it looks twice a second, so that of a short job it shows only the end, and
    of a short one that was enqueued long ago perhaps nothing. --json prints one line of JSON each.
    """
    recent, printer = RecentJobs(scheduler.store), LogPrinter(as_json=as_json)
    while job_id is None:
        for job in await recent.look():
            _print_stage(job, as_json=as_json)
        await asyncio.sleep(_LOOK_EVERY)
    async for news in JobFollower(scheduler.store, job_id).until_ended():
        _print_news(news, printer, as_json=as_json)
        if news.job.state.terminal and news.job.state is not State.SUCCEEDED:
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
                say_json(_log_values(part), indent=None)
                continue
            if part.fence != self._fence:
                if self._fence is not None:
                    say(f"== try {part.attempt}")
                self._fence, self._expected = part.fence, 1
            if missing := part.line - self._expected:
                say(f"… {missing} lines are missing here …")
            self._expected = part.past
            say_lines(part.text)


def _print_news(news: JobNews, printer: LogPrinter, *, as_json: bool) -> None:
    """Print a job's new stage, progress and log in an order that reads well: an end comes last."""
    job, ended = news.job, news.job.state.terminal
    if news.moved and not ended:
        _print_stage(job, as_json=as_json)
    printer.print(news.logs)
    if news.progressed and as_json:
        values = {"kind": "progress", "id": job.id, "progress": job.progress, "note": job.progress_note}
        say_json(values, indent=None)
    elif news.progressed:
        say(f"== {job.progress or 0:.0%} {job.progress_note or ''}".rstrip())
    if news.moved and ended:
        _print_stage(job, as_json=as_json)


def _print_stage(job: StoredJob, *, as_json: bool) -> None:
    state, why = stage_of(job).state, shortened(job.error or job.reason or "", _TAIL_ERROR_WIDTH)
    at = to_datetime(stage_time(job)).isoformat(timespec="milliseconds")
    if as_json:
        values = {"kind": "state", "id": job.id, "task": job.task, "state": state, "attempt": job.attempt}
        say_json(values | {"at": at, "error": job.error, "reason": job.reason}, indent=None)
    else:
        say(f"== {at} {job.id} {job.task} {state}, try {job.attempt}{why and f': {why}'}")


def _log_values(part: LogPart) -> dict[str, object]:
    return {"kind": "log", "id": part.job_id, "attempt": part.attempt, "line": part.line, "text": part.text}
