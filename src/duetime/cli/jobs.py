"""`duetime jobs`: list, show and follow jobs, cancel them, run them again; `duetime enqueue` and `duetime explain`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple, Unpack

import click
import msgspec

from duetime.cli import output
from duetime.cli.command import (
    PendingAnswer,
    by_option,
    client_command,
    dry_run_option,
    job_ids_argument,
    option,
    read_wall_moment,
    store_time,
    target_command,
    watch_command,
)
from duetime.cli.ids import explain_anything, whole_job_id, whole_job_ids
from duetime.cli.job_writing import NO_JOB, criteria_options, delete, edit, purge
from duetime.cli.output import Answer, ExitCode
from duetime.model.job import JobId
from duetime.model.reports import LogPart
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.task import JobOptionValues, job_options
from duetime.model.text import counted
from duetime.model.time import Instant, to_datetime
from duetime.scheduler.jobs import JobQuery
from duetime.scheduler.lookup import find_job, find_task
from duetime.scheduler.records import AttemptRecord, JobRecord
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.task import Request, read_arguments
from duetime.stores.base import JobFilter, ReleaseAnswer, Store

_LIST_ERROR_WIDTH = 60
_JOBS_PER_LOOK: Final = 500
"""How many jobs that run, and how many of the newest ones, one look takes in."""
_LOOK_EVERY = 0.5
"""Seconds between looks."""
_TAIL_ERROR_WIDTH = 100

_TEXTS = {"finished": "has ended", "unknown": NO_JOB}


@click.group(short_help="List, show, follow, cancel, rerun and remove jobs.")
def jobs() -> None:
    """List, show and follow jobs, cancel them, run them again, delete them.

    A job is named by its id, with or without dashes, or the beginning of it; `-` reads ids from standard input.

    \b
      duetime jobs list --state failed
      duetime jobs show 0198c5a07d3e
      duetime jobs tail 0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10
      duetime jobs cancel 0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10
      duetime jobs rerun 0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10
      duetime jobs purge --tag customer-17 --dry-run
    """  # noqa: D301


for command in (edit, delete, purge):
    jobs.add_command(command)


@jobs.command("list")
@client_command
@criteria_options
@click.option("--limit", type=int, default=50, help="At most this many, up to 1000.")
@click.option("--cursor", help="The next page: what the page before has printed at its end.")
async def list_jobs(scheduler: Scheduler, **query: Unpack[JobQuery]) -> Answer:
    """List jobs, newest first."""
    found, now = await scheduler.jobs.list(**query), await store_time(scheduler)
    more = [] if found.cursor is None else [f"more: --cursor {found.cursor}"]
    head = ("ID", "TASK", "STATE", "WHEN", "TRY", "ERROR")
    return Answer(
        values=[_job_values(job) for job in found],
        lines=(*output.table_or("no jobs", head, (_job_row(job, now) for job in found)), *more),
        # JSON has no place for the cursor.
        json_notes=more,
    )


@jobs.command()
@client_command
@click.argument("job_id", metavar="ID")
async def show(scheduler: Scheduler, *, job_id: str) -> Answer:
    """Show all that is known about a job, earlier tries included."""
    job = await scheduler.jobs.get(await whole_job_id(scheduler, job_id))
    attempts = await scheduler.jobs.attempts(job.id)
    values, more = _job_values(job), {"attempts": msgspec.to_builtins(attempts)}
    return Answer(values=values | more, lines=_job_lines(job, values, attempts))


@jobs.command()
@client_command
@job_ids_argument
@click.option("--reason", default="cancelled on request", help="Kept with the job.")
@by_option
@dry_run_option
async def cancel(
    scheduler: Scheduler, *, job_ids: tuple[str, ...], reason: str, by: str | None, dry_run: bool
) -> Answer:
    """Cancel jobs; one that runs is asked to stop.

    `-` reads ids from standard input. Exits with 3 when a job does not exist, and else with 1 when one had
    ended already.
    """
    texts = _TEXTS | {
        "cancelled": "would be cancelled" if dry_run else "cancelled",
        "requested": f"its worker {'would be' if dry_run else 'was'} asked to stop it",
        "finished": "had ended already",
    }
    ids = await whole_job_ids(scheduler, job_ids)
    if not dry_run:
        return output.answer_of_each(await scheduler.jobs.cancel_many(ids, reason=reason, by=by), texts)
    answers = dict.fromkeys(ids, "unknown")
    meaning = {State.PENDING: "cancelled", State.RUNNING: "requested"}
    answers |= {job.id: meaning.get(job.state, "finished") for job in await scheduler.store.get(ids)}
    return output.answer_of_each(answers, texts)


@jobs.command(short_help="Enqueue jobs that have ended once more.")
@client_command
@job_ids_argument
@option("--delay", "DURATION", "Run them this long from now.")
@option("--at", "MOMENT", "Run them at this time: 2030-01-31T09:00:00+01:00.")
@option("--queue", "NAME", "In place of their own.")
@by_option
async def rerun(scheduler: Scheduler, *, job_ids: tuple[str, ...], by: str | None, **given: Any) -> Answer:
    """Enqueue jobs that have ended once more, each as a new job that names the old one.

    `-` reads ids from standard input. Exits with 3 when a job does not exist, and else with 1 when one has not
    ended yet.
    """
    new: dict[str, str] = {}

    async def again(job_id: str) -> str:
        new[job_id] = (await scheduler.jobs.rerun(job_id, by=by, **_given_options(given))).id
        return "enqueued"

    texts = _TEXTS | {"enqueued": "runs again as", "active": "still waits or runs"}
    answers = await output.collect_answers(await whole_job_ids(scheduler, job_ids), again)
    return replace(
        output.answer_of_each(answers, texts),
        values={one: {"answer": answer, "id": new.get(one)} for one, answer in answers.items()},
        lines=(f"{one}  {texts[answer]} {new.get(one, '')}".rstrip() for one, answer in answers.items()),
    )


@jobs.command(short_help="Put jobs off.")
@client_command
@job_ids_argument
@option("--delay", "DURATION", "Put them off by this.", required=True)
@by_option
async def snooze(
    scheduler: Scheduler, *, job_ids: tuple[str, ...], delay: timedelta, by: str | None
) -> Answer:
    """Put jobs off, from their due time, or from now if that has passed.

    `-` reads ids from standard input. Exits with 3 when a job does not exist, and else with 1 when one has
    been claimed by a worker or has ended.
    """
    texts = _TEXTS | {"snoozed": "put off", "active": "is with a worker"}
    ids = await whole_job_ids(scheduler, job_ids)
    return await output.ask_each(ids, partial(scheduler.jobs.snooze, delay=delay, by=by), texts, "snoozed")


@jobs.command(short_help="Take back jobs that workers have not started.")
@client_command
@job_ids_argument
@click.option("--force", is_flag=True, help="Take away even jobs that have started; they may then run twice.")
@by_option
@dry_run_option
async def release(
    scheduler: Scheduler, *, job_ids: tuple[str, ...], force: bool, by: str | None, dry_run: bool
) -> Answer:
    """Have workers give back jobs that they have claimed and not started, for others to have.

    A job that has started is left alone without --force. `-` reads ids from standard input. Exits with 3 when a
    job does not exist, and else with 1 when one has started or ended, or its worker does not answer.
    """

    async def take(job_id: str) -> str:
        if not dry_run:
            return await scheduler.jobs.release(job_id, force=force, by=by)
        job = await scheduler.jobs.get(job_id)
        if job.state.terminal:
            return ReleaseAnswer.FINISHED
        if job.state is State.PENDING:
            return ReleaseAnswer.WAITING
        return "active" if job.started_at is not None and not force else ReleaseAnswer.RELEASED

    texts = {
        "released": "would be given back" if dry_run else "given back",
        "waiting": "no worker has it",
        "active": "has started; --force takes it away all the same",
        "unanswered": "its worker does not give it back; --force takes it away all the same",
    }
    return await output.ask_each(await whole_job_ids(scheduler, job_ids), take, _TEXTS | texts)


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
        running = await self._store.find(JobFilter(states=frozenset({State.RUNNING}), limit=_JOBS_PER_LOOK))
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


@jobs.command()
@watch_command
@click.argument("job_id", metavar="ID")
@click.option("--follow", "-f", is_flag=True, help="Go on until the job has ended.")
async def logs(scheduler: Scheduler, *, job_id: str, follow: bool, as_json: bool) -> None:
    """Print what a job has logged, try by try.

    With --follow, --json prints one line of JSON for each part.
    """
    printer, job_id = LogPrinter(as_json=as_json), await whole_job_id(scheduler, job_id)
    if follow:
        async for news in JobFollower(scheduler.store, job_id).until_ended():
            printer.print(news.logs)
        return
    found = await scheduler.jobs.logs(job_id)
    if as_json:
        output.say_json([_log_values(part) for part in found])
    else:
        printer.print(found)


@jobs.command()
@watch_command
@click.argument("job_id", metavar="[ID]", required=False)
async def tail(scheduler: Scheduler, *, job_id: str | None, as_json: bool) -> None:
    """Follow a job until it ends, or all jobs as they start and end.

    With ID it prints the job's state, progress and log, and exits with 0 if the job succeeds and with 1 if not.
    Without ID it goes on until Ctrl-C. It looks twice a second: of a short job it shows the end alone, or nothing if
    the job was enqueued long ago. --json prints a line of JSON for each.
    """
    recent, printer = RecentJobs(scheduler.store), LogPrinter(as_json=as_json)
    while job_id is None:
        for job in await recent.look():
            _print_stage(job, as_json=as_json)
        await asyncio.sleep(_LOOK_EVERY)
    try:
        whole = await whole_job_id(scheduler, job_id)
        async for news in JobFollower(scheduler.store, whole).until_ended():
            _print_news(news, printer, as_json=as_json)
            if news.job.state.terminal and news.job.state is not State.SUCCEEDED:
                raise click.exceptions.Exit(ExitCode.FAILURE)
    except asyncio.CancelledError:
        # Ctrl-C, before it had ended.
        raise click.exceptions.Exit(ExitCode.FAILURE) from None


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
                output.say_json(_log_values(part), indent=None)
                continue
            if part.fence != self._fence:
                if self._fence is not None:
                    output.say(f"== try {part.attempt}")
                self._fence, self._expected = part.fence, 1
            if missing := part.line - self._expected:
                output.say(f"… {counted(missing, 'line')} missing here …")
            self._expected = part.past
            output.say_lines(part.text)


def _print_news(news: JobNews, printer: LogPrinter, *, as_json: bool) -> None:
    """Print a job's new stage, progress and log in an order that reads well: an end comes last."""
    job, ended = news.job, news.job.state.terminal
    if news.moved and not ended:
        _print_stage(job, as_json=as_json)
    printer.print(news.logs)
    if news.progressed and as_json:
        values = {"kind": "progress", "id": job.id, "progress": job.progress, "note": job.progress_note}
        output.say_json(values, indent=None)
    elif news.progressed:
        output.say(f"== {job.progress or 0:.0%} {job.progress_note or ''}".rstrip())
    if news.moved and ended:
        _print_stage(job, as_json=as_json)


def _print_stage(job: StoredJob, *, as_json: bool) -> None:
    state, why = stage_of(job).state, output.shortened(job.error or job.reason or "", _TAIL_ERROR_WIDTH)
    at = to_datetime(stage_time(job)).isoformat(timespec="milliseconds")
    if as_json:
        values = {"kind": "state", "id": job.id, "task": job.task, "state": state, "attempt": job.attempt}
        output.say_json(values | {"at": at, "error": job.error, "reason": job.reason}, indent=None)
    else:
        output.say(f"== {at} {job.id} {job.task} {state}, try {job.attempt}{why and f': {why}'}")


def _log_values(part: LogPart) -> dict[str, object]:
    return {"kind": "log", "id": part.job_id, "attempt": part.attempt, "line": part.line, "text": part.text}


@click.command()
@target_command
@click.argument("task")
@click.argument("arguments", nargs=-1)
@option("--delay", "DURATION", "Run it this long from now: 10s, 1h30m.")
@option("--at", "MOMENT", "Run it at this time: 2030-01-31T09:00:00+01:00.")
@click.option("--queue", help="Put it into this queue instead of the task's own.")
@click.option("--priority", type=int, help="From 0 (first) to 9, instead of the task's own.")
def enqueue(scheduler: Scheduler, *, task: str, arguments: tuple[str, ...], **given: Any) -> PendingAnswer:
    """Store a job that calls TASK, and print its id.

    ARGUMENTS are name=value pairs, read as the type of the parameter, or one JSON object or array.

    \b
      duetime enqueue jobs:scheduler jobs.send_email user_id=1 message=hi
      duetime enqueue jobs:scheduler jobs.send_email '{"user_id": 1, "message": "hi"}' --delay 10s
      duetime enqueue jobs:scheduler jobs.send_email '[1, "hi"]' --at 2030-01-31T09:00:00Z --priority 0
    """  # noqa: D301
    handler = find_task(scheduler.tasks, task)
    request: Request[..., Any] = Request(handler, scheduler, job_options(_given_options(given)))
    call = read_arguments(handler, arguments)

    async def store() -> Answer:
        job = await (await request.enqueue(*call.args, **call.kwargs)).record()
        values = {"id": job.id, "task": job.task, "queue": job.queue, "due_at": job.due_at.isoformat()}
        return Answer(values=values, lines=[job.id])

    return store()


_AT_HELP = "What a schedule did at this time: in its own zone unless another is named, without seconds the whole minute."


@click.command(short_help="Tell why a job or a schedule has not run, or a worker takes nothing.")
@client_command
@click.argument("subject", metavar="ID|SCHEDULE")
@option("--at", "MOMENT", _AT_HELP, type=read_wall_moment)
async def explain(scheduler: Scheduler, *, subject: str, at: datetime | None) -> Answer:
    """Tell in sentences what happened to a job or a schedule and why it has not run, or how a worker stands.

    It looks for a job of this id, then for a schedule of this name, then for jobs and workers whose id begins so.

    \b
      duetime explain 0198c5a07d3e7c429a576a1f6d4f2b10
      duetime explain nightly-report
      duetime explain nightly-report --at "2026-11-15 03:00"
    """  # noqa: D301
    if at is None:
        found = await explain_anything(scheduler, subject)
    else:
        found = await scheduler.schedules.explain(subject, at=at)
    return Answer(values=msgspec.to_builtins(found), lines=output.text_lines(str(found)))


def _given_options(given: dict[str, Any]) -> JobOptionValues:
    return {name: value for name, value in given.items() if value is not None}  # type: ignore[return-value]


def _job_lines(job: JobRecord, values: dict[str, object], attempts: Sequence[AttemptRecord]) -> Iterator[str]:
    yield from output.record_lines(values, without="traceback")
    for number, attempt in enumerate(attempts, 1):
        when = attempt.ended_at or attempt.started_at or attempt.due_at
        wrong = "" if attempt.error is None else f": {attempt.error}"
        yield f"try {number:<12} {when.isoformat()} {attempt.outcome}{wrong}"
    if job.traceback is not None:
        yield ""
        yield from output.text_lines(job.traceback)


def _job_row(job: JobRecord, now: datetime) -> tuple[str, str, str, str, str, str]:
    verb, at = "due", job.due_at
    if job.finished_at is not None:
        verb, at = "ended", job.finished_at
    elif job.state is State.RUNNING and job.started_at is not None:
        verb, at = "started", job.started_at
    wrong = output.shortened(job.error or job.reason or "", _LIST_ERROR_WIDTH)
    return job.id, job.task, job.state, f"{verb} {output.relative_time(at, now)}", str(job.attempt), wrong


def _job_values(job: JobRecord) -> dict[str, object]:
    """Return a job as JSON values, its lateness in seconds."""
    values: dict[str, object] = msgspec.to_builtins(job)
    values["lateness"] = None if job.lateness is None else job.lateness.total_seconds()
    return values
