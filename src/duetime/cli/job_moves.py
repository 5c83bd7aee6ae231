"""`duetime jobs cancel`, `rerun`, `snooze` and `release`: what changes single jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta

import click

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.failures import ExitCode
from duetime.cli.text import say, say_json
from duetime.errors import JobActive, JobEnded, JobNotFound
from duetime.model.states import State
from duetime.model.task import JobOptionValues
from duetime.scheduler.scheduler import Scheduler
from duetime.stores.base import CancelAnswer, ReleaseAnswer

_CANCELLED = {
    CancelAnswer.CANCELLED: "cancelled",
    CancelAnswer.REQUESTED: "its worker was asked to stop it",
    CancelAnswer.FINISHED: "had ended already",
    CancelAnswer.UNKNOWN: "there is no such job",
}
_WOULD_BE_CANCELLED = _CANCELLED | {
    CancelAnswer.CANCELLED: "would be cancelled",
    CancelAnswer.REQUESTED: "its worker would be asked to stop it",
}
_REFUSED = {"active", "finished", "unanswered"}


@click.command()
@options.database
@options.job_ids
@click.option("--reason", default="cancelled on request", show_default=True, help="Kept with the job.")
@options.dry_run
@options.as_json
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
                return await _foreseen(scheduler, job_ids)
            return await scheduler.jobs.cancel_many(job_ids, reason=reason)

    answers = asyncio.run(ask())
    texts = _WOULD_BE_CANCELLED if dry_run else _CANCELLED
    _tell(answers, {job_id: texts[answer] for job_id, answer in answers.items()}, as_json=as_json)


@click.command()
@options.database
@options.job_ids
@click.option("--delay", type=options.duration, metavar="DURATION", help="Run them this long from now.")
@click.option("--at", type=options.moment, metavar="MOMENT", help="Run them then; ISO 8601 with a zone.")
@click.option("--queue", metavar="NAME", help="In place of their own.")
@options.as_json
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

    answers = asyncio.run(_each(url, namespace, job_ids, again))
    texts = {"enqueued": "runs again as", "active": "still waits or runs", "unknown": "there is no such job"}
    if as_json:
        say_json({job_id: {"answer": answer, "id": new.get(job_id)} for job_id, answer in answers.items()})
    else:
        for job_id, answer in answers.items():
            say(f"{job_id}  {texts[answer]} {new.get(job_id, '')}".rstrip())
    _exit(answers.values())


@click.command()
@options.database
@options.job_ids
@click.option(
    "--delay", type=options.duration, metavar="DURATION", required=True, help="Put them off by this."
)
@options.as_json
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

    answers = asyncio.run(_each(url, namespace, job_ids, put_off))
    texts = {"snoozed": "put off", "active": "is with a worker", "finished": "has ended"}
    _tell(
        answers,
        {job_id: texts.get(answer, "there is no such job") for job_id, answer in answers.items()},
        as_json=as_json,
    )


@click.command()
@options.database
@options.job_ids
@click.option(
    "--force", is_flag=True, help="Take them away, also jobs that have started; they may then run twice."
)
@options.dry_run
@options.as_json
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

    answers = asyncio.run(_each(url, namespace, job_ids, take))
    texts = {
        "released": "would be given back" if dry_run else "given back",
        "waiting": "no worker has it",
        "active": "has started; --force takes it away all the same",
        "unanswered": "its worker does not give it back; --force takes it away all the same",
        "finished": "has ended",
        "unknown": "there is no such job",
    }
    _tell(answers, {job_id: texts[answer] for job_id, answer in answers.items()}, as_json=as_json)


async def _each(
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


async def _foreseen(scheduler: Scheduler, ids: Iterable[str]) -> dict[str, CancelAnswer]:
    """Tell what a cancel would answer now."""
    meaning = {State.PENDING: CancelAnswer.CANCELLED, State.RUNNING: CancelAnswer.REQUESTED}
    found = {job.id: job.state for job in await scheduler.store.get(list(ids))}
    return {
        job_id: meaning.get(found[job_id], CancelAnswer.FINISHED) if job_id in found else CancelAnswer.UNKNOWN
        for job_id in ids
    }


def _tell(answers: Mapping[str, str], texts: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        say_json(answers)
    else:
        for job_id, text in texts.items():
            say(f"{job_id}  {text}")
    _exit(answers.values())


def _exit(answers: Iterable[str]) -> None:
    """End with the code for the worst answer."""
    given = set(answers)
    if "unknown" in given:
        raise click.exceptions.Exit(ExitCode.NOT_FOUND)
    if given & _REFUSED:
        raise click.exceptions.Exit(ExitCode.FAILURE)
