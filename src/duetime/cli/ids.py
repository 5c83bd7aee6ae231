"""Which jobs and workers are meant by ids or their beginnings, and what is meant by a word that may be anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from duetime.cli.output import CommandFailure, ExitCode
from duetime.errors import JobNotFound, ScheduleNotFound
from duetime.model.ids import is_whole, read_beginning, read_id
from duetime.model.job import JobId
from duetime.model.text import did_you_mean
from duetime.scheduler.explanations import Explanation, ScheduleExplanation, WorkerExplanation
from duetime.scheduler.lookup import jobs_beginning, worker_not_found
from duetime.scheduler.records import WorkerRecord
from duetime.scheduler.scheduler import Scheduler

_MOST_LISTED: Final = 10


async def whole_job_id(scheduler: Scheduler, given: str) -> JobId:
    """Return the id that begins so; what no job has stays as it is, for others to say so."""
    start = read_beginning(given)
    if start is None or is_whole(start):
        return read_id(given)
    return only_one(given, await _jobs(scheduler, start)) or given


async def whole_job_ids(scheduler: Scheduler, given: Iterable[str]) -> list[JobId]:
    """Return the ids that begin so, each once."""
    return [*dict.fromkeys([await whole_job_id(scheduler, one) for one in given])]


def meant_workers(known: Sequence[WorkerRecord], given: Iterable[str]) -> list[WorkerRecord]:
    """Return the workers that are meant by ids or their beginnings, or share a name; raises `WorkerNotFound`."""
    found: dict[str, WorkerRecord] = {}
    for one in given:
        named = [worker for worker in known if worker.name == one]
        if named:
            # Of those that are gone, the last.
            meant = [worker for worker in named if worker.state == "alive"] or named[:1]
            found |= {worker.id: worker for worker in meant}
            continue
        workers = _workers(known, read_beginning(one) or one)
        worker = only_one(one, {worker_id: _worker_text(worker) for worker_id, worker in workers.items()})
        if worker is None:
            raise worker_not_found(one)
        found[worker] = workers[worker]
    return [*found.values()]


def meant_worker(known: Sequence[WorkerRecord], given: str) -> WorkerRecord:
    """Return the one worker that is meant."""
    found = {worker.id: worker for worker in meant_workers(known, [given])}
    only_one(given, {worker_id: _worker_text(worker) for worker_id, worker in found.items()})
    return next(iter(found.values()))


async def explain_anything(
    scheduler: Scheduler, subject: str
) -> Explanation | ScheduleExplanation | WorkerExplanation:
    """Explain the job of this id, else the schedule of this name, else the one job or worker whose id begins so."""
    start = read_beginning(subject)
    if start is not None and is_whole(start):
        with contextlib.suppress(JobNotFound):
            return await scheduler.jobs.explain(start)
    with contextlib.suppress(ScheduleNotFound):
        return await scheduler.schedules.explain(subject)
    workers = {} if start is None else _workers(await scheduler.workers.list(), start)
    jobs = {} if start is None else await _jobs(scheduler, start)
    found = only_one(subject, jobs | {one: _worker_text(worker) for one, worker in workers.items()})
    if found is None:
        offer = did_you_mean(subject, [schedule.name for schedule in await scheduler.store.schedules()])
        raise CommandFailure(
            f"there is no job or worker whose id is or begins with {subject!r}, and no schedule of this name; "
            + (offer or "`duetime jobs list`, `schedules list` and `workers list` show those there are"),
            ExitCode.NOT_FOUND,
        )
    return await (scheduler.workers if found in workers else scheduler.jobs).explain(found)


def only_one(given: str, found: Mapping[str, str]) -> str | None:
    """Return the one id that was found; raise `CommandFailure` with all of them, and what they are, if it is several."""
    if len(found) <= 1:
        return next(iter(found), None)
    listed = [f"  {one}  {text}" for one, text in found.items()]
    if len(listed) > _MOST_LISTED:
        listed[_MOST_LISTED:] = ["  … and more"]
    raise CommandFailure("\n".join([f"{given!r} may be any of these; write more of it:", *listed]))


async def _jobs(scheduler: Scheduler, start: str) -> dict[str, str]:
    """Return the jobs whose ids begin so, with what they are; no more than are listed, and one."""
    found = await jobs_beginning(scheduler.store, start, limit=_MOST_LISTED + 1)
    return {job.id: f"job of {job.task}, {job.state}" for job in found}


def _workers(known: Iterable[WorkerRecord], start: str) -> dict[str, WorkerRecord]:
    return {worker.id: worker for worker in known if worker.id.startswith(start)}


def _worker_text(worker: WorkerRecord) -> str:
    return f"worker, pid {worker.pid} on {worker.host}, {worker.state}"
