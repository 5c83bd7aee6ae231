"""`duetime jobs`: list, show and follow jobs, cancel them, run them again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar, Unpack

import click
import msgspec

from duetime.cli.loading import client
from duetime.cli.options import (
    database_options,
    dry_run_option,
    job_ids_argument,
    json_option,
    read_duration,
    read_moment,
    read_moment_or_duration,
)
from duetime.cli.output import (
    ExitCode,
    relative_time,
    say,
    say_json,
    say_json_line,
    say_lines,
    say_table,
    shortened,
)
from duetime.errors import JobActive, JobEnded, JobNotFound
from duetime.model.job import JobId
from duetime.model.queues import Registry
from duetime.model.reports import LogPart
from duetime.model.states import State
from duetime.model.stored import StoredJob
from duetime.model.task import JobOptionValues
from duetime.model.time import Instant, to_datetime
from duetime.scheduler.jobs import JobQuery, Page
from duetime.scheduler.lookup import find_job
from duetime.scheduler.records import AttemptRecord, JobRecord
from duetime.scheduler.scheduler import Scheduler
from duetime.stores.base import CancelAnswer, JobFilter, ReleaseAnswer, Store

_JOBS_PER_LOOK: Final = 500
"""How many jobs that run, and how many of the newest ones, one look takes in."""


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
        match now.state:
            case State.RUNNING:
                return True
            case State.PENDING:
                return before is not None and before.state is State.RUNNING
            case _:
                return stage_time(job) >= since


def stage_of(job: StoredJob) -> JobStage:
    """Return the stage a job is at; one that is held for its due time still waits."""
    if job.state is State.RUNNING and job.started_at is None:
        return JobStage(State.PENDING, job.attempt)
    return JobStage(job.state, job.fence if job.state is State.RUNNING else job.attempt)


def stage_time(job: StoredJob) -> Instant:
    """Return when a job came to where it is: its end, else its start, else its due time."""
    return job.finished_at or job.started_at or job.due_at


T = TypeVar("T")

_LOOK_EVERY = 0.5
"""Seconds between looks."""
_TAIL_ERROR_WIDTH = 100


@click.command()
@database_options
@click.argument("job_id", metavar="ID")
@click.option("--follow", "-f", is_flag=True, help="Go on until the job has ended.")
@json_option
def logs(*, url: str | None, namespace: str, job_id: str, follow: bool, as_json: bool) -> None:
    """Print what a job has logged, try by try.

    With --follow, --json prints one line of JSON for each part.
    """

    async def read() -> Iterable[LogPart]:
        async with client(url, namespace) as scheduler:
            return await scheduler.jobs.logs(job_id)

    async def go_on() -> None:
        async with client(url, namespace) as scheduler:
            follower, printer = JobFollower(scheduler.store, job_id), LogPrinter(as_json=as_json)
            while True:
                news = await follower.look()
                printer.print(news.logs)
                if news.job.state.terminal:
                    return
                await asyncio.sleep(_LOOK_EVERY)

    if follow:
        _until_stopped(go_on())
    elif as_json:
        say_json([_log_values(part) for part in asyncio.run(read())])
    else:
        LogPrinter(as_json=False).print(asyncio.run(read()))


@click.command()
@database_options
@click.argument("job_id", metavar="[ID]", required=False)
@json_option
def tail(*, url: str | None, namespace: str, job_id: str | None, as_json: bool) -> None:
    """Follow a job until it ends, or all jobs as they start and end.

    With ID it prints the job's state, progress and log, and exits with 0 if the job succeeds and with 1 if not.
    Without ID it goes on until Ctrl-C; it looks twice a second, so that of a short job it shows only the end, and
    of a short one that was enqueued long ago perhaps nothing. --json prints one line of JSON each.
    """

    async def one(job_id: str) -> State:
        async with client(url, namespace) as scheduler:
            follower, printer = JobFollower(scheduler.store, job_id), LogPrinter(as_json=as_json)
            while True:
                news = await follower.look()
                _print_news(news, printer, as_json=as_json)
                if news.job.state.terminal:
                    return news.job.state
                await asyncio.sleep(_LOOK_EVERY)

    async def everything() -> None:
        async with client(url, namespace) as scheduler:
            latest = RecentJobs(scheduler.store)
            while True:
                for job in await latest.look():
                    _print_stage(job, as_json=as_json)
                await asyncio.sleep(_LOOK_EVERY)

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


def _print_news(news: JobNews, printer: LogPrinter, *, as_json: bool) -> None:
    """Print a job's new stage, progress and log in an order that reads well: an end comes last."""
    ended = news.job.state.terminal
    if news.moved and not ended:
        _print_stage(news.job, as_json=as_json)
    printer.print(news.logs)
    if news.progressed:
        _print_progress(news.job, as_json=as_json)
    if news.moved and ended:
        _print_stage(news.job, as_json=as_json)


def _print_stage(job: StoredJob, *, as_json: bool) -> None:
    state, why = stage_of(job).state, shortened(job.error or job.reason or "", _TAIL_ERROR_WIDTH)
    at = to_datetime(stage_time(job)).isoformat(timespec="milliseconds")
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


_CANCEL_TEXTS = {
    CancelAnswer.CANCELLED: "cancelled",
    CancelAnswer.REQUESTED: "its worker was asked to stop it",
    CancelAnswer.FINISHED: "had ended already",
    CancelAnswer.UNKNOWN: "there is no such job",
}
_DRY_CANCEL_TEXTS = _CANCEL_TEXTS | {
    CancelAnswer.CANCELLED: "would be cancelled",
    CancelAnswer.REQUESTED: "its worker would be asked to stop it",
}
_REFUSALS = {"active", "finished", "unanswered"}


@click.command()
@database_options
@job_ids_argument
@click.option("--reason", default="cancelled on request", show_default=True, help="Kept with the job.")
@dry_run_option
@json_option
def cancel(
    *, url: str | None, namespace: str, job_ids: tuple[str, ...], reason: str, dry_run: bool, as_json: bool
) -> None:
    """Cancel jobs; one that runs is asked to stop.

    `-` reads ids from standard input. Exits with 3 when a job does not exist, and else with 1 when one had
    ended already.
    """

    async def ask() -> Mapping[str, CancelAnswer]:
        async with client(url, namespace) as scheduler:
            if dry_run:
                return await _cancel_answers_foreseen(scheduler, job_ids)
            return await scheduler.jobs.cancel_many(job_ids, reason=reason)

    answers = asyncio.run(ask())
    texts = _DRY_CANCEL_TEXTS if dry_run else _CANCEL_TEXTS
    _say_answers(answers, {job_id: texts[answer] for job_id, answer in answers.items()}, as_json=as_json)


@click.command()
@database_options
@job_ids_argument
@click.option("--delay", type=read_duration, metavar="DURATION", help="Run them this long from now.")
@click.option("--at", type=read_moment, metavar="MOMENT", help="Run them then; ISO 8601 with a zone.")
@click.option("--queue", metavar="NAME", help="In place of their own.")
@json_option
def rerun(
    *,
    url: str | None,
    namespace: str,
    job_ids: tuple[str, ...],
    delay: timedelta | None,
    at: datetime | None,
    queue: str | None,
    as_json: bool,
) -> None:
    """Enqueue jobs that have ended once more, each as a new job that names the old one.

    `-` reads ids from standard input. Exits with 3 when a job does not exist, and else with 1 when one has not
    ended yet.
    """
    given = {"delay": delay, "at": at, "queue": queue}
    values: JobOptionValues = {k: v for k, v in given.items() if v is not None}  # type: ignore[assignment]
    new: dict[str, str] = {}

    async def again(scheduler: Scheduler, job_id: str) -> str:
        new[job_id] = (await scheduler.jobs.rerun(job_id, **values)).id
        return "enqueued"

    answers = asyncio.run(_answer_for_each(url, namespace, job_ids, again))
    texts = {"enqueued": "runs again as", "active": "still waits or runs", "unknown": "there is no such job"}
    if as_json:
        say_json({job_id: {"answer": answer, "id": new.get(job_id)} for job_id, answer in answers.items()})
    else:
        for job_id, answer in answers.items():
            say(f"{job_id}  {texts[answer]} {new.get(job_id, '')}".rstrip())
    _exit_with_worst(answers.values())


@click.command()
@database_options
@job_ids_argument
@click.option("--delay", type=read_duration, metavar="DURATION", required=True, help="Put them off by this.")
@json_option
def snooze(
    *, url: str | None, namespace: str, job_ids: tuple[str, ...], delay: timedelta, as_json: bool
) -> None:
    """Put jobs off, from their due time, or from now if that has passed.

    `-` reads ids from standard input. Exits with 3 when a job does not exist, and else with 1 when one has
    been claimed by a worker or has ended.
    """

    async def put_off(scheduler: Scheduler, job_id: str) -> str:
        await scheduler.jobs.snooze(job_id, delay)
        return "snoozed"

    answers = asyncio.run(_answer_for_each(url, namespace, job_ids, put_off))
    texts = {"snoozed": "put off", "active": "is with a worker", "finished": "has ended"}
    _say_answers(
        answers,
        {job_id: texts.get(answer, "there is no such job") for job_id, answer in answers.items()},
        as_json=as_json,
    )


@click.command()
@database_options
@job_ids_argument
@click.option(
    "--force", is_flag=True, help="Take them away, also jobs that have started; they may then run twice."
)
@dry_run_option
@json_option
def release(
    *, url: str | None, namespace: str, job_ids: tuple[str, ...], force: bool, dry_run: bool, as_json: bool
) -> None:
    """Have workers give back jobs that they have claimed and not started, for others to have.

    A job that has started is left alone without --force. `-` reads ids from standard input. Exits with 3 when a
    job does not exist, and else with 1 when one has started or ended, or its worker does not answer.
    """

    async def take(scheduler: Scheduler, job_id: str) -> str:
        if not dry_run:
            return await scheduler.jobs.release(job_id, force=force)
        job = await scheduler.jobs.get(job_id)
        if job.state.terminal:
            return ReleaseAnswer.FINISHED
        if job.state is State.PENDING:
            return ReleaseAnswer.WAITING
        return "active" if job.started_at is not None and not force else ReleaseAnswer.RELEASED

    answers = asyncio.run(_answer_for_each(url, namespace, job_ids, take))
    texts = {
        "released": "would be given back" if dry_run else "given back",
        "waiting": "no worker has it",
        "active": "has started; --force takes it away all the same",
        "unanswered": "its worker does not give it back; --force takes it away all the same",
        "finished": "has ended",
        "unknown": "there is no such job",
    }
    _say_answers(answers, {job_id: texts[answer] for job_id, answer in answers.items()}, as_json=as_json)


async def _answer_for_each(
    url: str | None, namespace: str, ids: Iterable[str], act: Callable[[Scheduler, str], Awaitable[str]]
) -> dict[str, str]:
    """Do something to each job, and go on when one cannot have it."""
    answers: dict[str, str] = {}
    async with client(url, namespace) as scheduler:
        for job_id in ids:
            try:
                answers[job_id] = await act(scheduler, job_id)
            except JobNotFound:
                answers[job_id] = "unknown"
            except JobActive:
                answers[job_id] = "active"
            except JobEnded:
                answers[job_id] = "finished"
            except TimeoutError:
                answers[job_id] = "unanswered"
    return answers


async def _cancel_answers_foreseen(scheduler: Scheduler, ids: Iterable[str]) -> dict[str, CancelAnswer]:
    """Tell what a cancel would answer now."""
    meaning = {State.PENDING: CancelAnswer.CANCELLED, State.RUNNING: CancelAnswer.REQUESTED}
    found = {job.id: job.state for job in await scheduler.store.get(list(ids))}
    return {
        job_id: meaning.get(found[job_id], CancelAnswer.FINISHED) if job_id in found else CancelAnswer.UNKNOWN
        for job_id in ids
    }


def _say_answers(answers: Mapping[str, str], texts: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        say_json(answers)
    else:
        for job_id, text in texts.items():
            say(f"{job_id}  {text}")
    _exit_with_worst(answers.values())


def _exit_with_worst(answers: Iterable[str]) -> None:
    """End with the code for the worst answer."""
    given = set(answers)
    if "unknown" in given:
        raise click.exceptions.Exit(ExitCode.NOT_FOUND)
    if given & _REFUSALS:
        raise click.exceptions.Exit(ExitCode.FAILURE)


_LIST_ERROR_WIDTH = 60


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
@database_options
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
    type=read_moment_or_duration,
    metavar="WHEN",
    help="Only jobs enqueued in the last 2h, or since 2030-01-31T09:00:00Z.",
)
@click.option("--limit", type=int, default=50, show_default=True, help="At most so many, up to 1000.")
@click.option("--cursor", help="The next page, as the page before has told it.")
@json_option
def list_jobs(*, url: str | None, namespace: str, as_json: bool, **query: Unpack[JobQuery]) -> None:
    """List jobs, newest first."""

    async def read() -> tuple[Page[JobRecord], datetime]:
        async with client(url, namespace) as scheduler:
            return await scheduler.jobs.list(**query), to_datetime(await scheduler.store.now())

    found, now = asyncio.run(read())
    if as_json:
        say_json([_job_values(job) for job in found])
    elif found:
        say_table(("ID", "TASK", "STATE", "WHEN", "TRY", "ERROR"), (_job_row(job, now) for job in found))
    else:
        say("no jobs")
    if found.cursor is not None:
        # Beside JSON, which has no place for it.
        say(f"more: --cursor {found.cursor}", err=as_json)


@jobs.command()
@database_options
@click.argument("job_id", metavar="ID")
@json_option
def show(*, url: str | None, namespace: str, job_id: str, as_json: bool) -> None:
    """Show all that is known about a job, earlier tries included."""

    async def read() -> tuple[JobRecord, Sequence[AttemptRecord]]:
        async with client(url, namespace) as scheduler:
            return await scheduler.jobs.get(job_id), await scheduler.jobs.attempts(job_id)

    job, attempts = asyncio.run(read())
    if as_json:
        say_json(_job_values(job) | {"attempts": msgspec.to_builtins(attempts)})
        return
    for name, value in _job_values(job).items():
        if name != "traceback" and value is not None:
            say(f"{name:16} {value if isinstance(value, str) else msgspec.json.encode(value).decode()}")
    for number, attempt in enumerate(attempts, 1):
        when = attempt.ended_at or attempt.started_at or attempt.due_at
        wrong = "" if attempt.error is None else f": {attempt.error}"
        say(f"try {number:<12} {when.isoformat()} {attempt.outcome}{wrong}")
    if job.traceback is not None:
        say("")
        say_lines(job.traceback)


def _job_row(job: JobRecord, now: datetime) -> tuple[str, str, str, str, str, str]:
    wrong = shortened(job.error or job.reason or "", _LIST_ERROR_WIDTH)
    return job.id, job.task, job.state, _latest_event(job, now), str(job.attempt), wrong


def _latest_event(job: JobRecord, now: datetime) -> str:
    if job.finished_at is not None:
        return f"ended {relative_time(job.finished_at, now)}"
    if job.state is State.RUNNING and job.started_at is not None:
        return f"started {relative_time(job.started_at, now)}"
    return f"due {relative_time(job.due_at, now)}"


def _job_values(job: JobRecord) -> dict[str, object]:
    """Return a job as JSON values, its lateness in seconds."""
    values: dict[str, object] = msgspec.to_builtins(job)
    values["lateness"] = None if job.lateness is None else job.lateness.total_seconds()
    return values
