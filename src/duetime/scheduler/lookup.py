"""Finds what a client names, or says that it is not there, or that the store has moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from duetime.errors import JobNotFound, ScheduleNotFound, StoreMoved, UnknownTask, WorkerNotFound
from duetime.model.job import JobId
from duetime.model.schedule.record import StoredSchedule
from duetime.model.stored.jobs import StoredJob, StoredWorker
from duetime.model.text import check_whole, did_you_mean
from duetime.model.worker import WorkerId
from duetime.runtime.running.handler import Handler
from duetime.stores.base import BEHIND_ALL_IDS, JobFilter, Store

MAX_PAGE: Final = 1_000


async def find_job(store: Store, job_id: JobId) -> StoredJob:
    """Return one job; raises `JobNotFound`."""
    found = await store.get([job_id])
    if not found:
        raise job_not_found(job_id)
    return found[0]


async def jobs_beginning(store: Store, start: str, *, limit: int) -> list[StoredJob]:
    """Return jobs whose ids begin so, newest first."""
    # Ids are read downwards from the last that could begin so: those that do come first.
    found = await store.find(JobFilter(before=start + BEHIND_ALL_IDS, limit=limit))
    return [job for job in found if job.id.startswith(start)]


async def find_schedule(store: Store, name: str) -> StoredSchedule:
    """Return one schedule; raises `ScheduleNotFound` with those that may be meant."""
    found = await store.get_schedules([name])
    if not found:
        raise schedule_not_found(name, [schedule.name for schedule in await store.schedules()])
    return found[0]


def schedule_not_found(name: str, known: Iterable[str] = ()) -> ScheduleNotFound:
    """Return the error for a name that no schedule has."""
    offer = did_you_mean(name, known) or "`duetime schedules list` shows those there are"
    return ScheduleNotFound(f"there is no schedule {name!r}; {offer}")


def job_not_found(job_id: JobId) -> JobNotFound:
    """Return the error for a job that is not there."""
    return JobNotFound(f"there is no job {job_id}; it never existed or its record was pruned")


def find_worker(workers: Iterable[StoredWorker], worker_id: WorkerId) -> StoredWorker:
    """Return one of the workers that are known; raises `WorkerNotFound`."""
    found = next((worker for worker in workers if worker.id == worker_id), None)
    if found is None:
        raise worker_not_found(worker_id)
    return found


def worker_not_found(worker_id: WorkerId) -> WorkerNotFound:
    """Return the error for a worker that is not there."""
    return WorkerNotFound(f"there is no worker {worker_id}; it never existed or its record was pruned")


def find_task(tasks: Mapping[str, Handler], task: str) -> Handler:
    """Return a registered task; raises `UnknownTask` with those that may be meant."""
    if task in tasks:
        return tasks[task]
    offer = did_you_mean(task, sorted(tasks)) or f"there are: {', '.join(sorted(tasks)) or 'none'}"
    raise UnknownTask(f"there is no task {task!r} here; {offer}")


def check_not_moved(store: Store) -> None:
    """Raise `StoreMoved` for a store that was copied: its jobs run elsewhere, and no one would run new ones."""
    if store.moved is not None:
        raise StoreMoved(store.moved)


def growing_pauses(longest: float = 0.1) -> Iterator[float]:
    """Yield how long to wait before each look at what another process is to answer."""
    pause = 0.005
    while True:
        yield pause
        pause = min(longest, pause * 1.5)


def check_limit(limit: int, *, what: str = "limit") -> int:
    """Return the number, or raise `InvalidOption`."""
    return check_whole(limit, 1, MAX_PAGE, what=what)
