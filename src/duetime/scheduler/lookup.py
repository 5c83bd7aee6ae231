"""Finds what a client names, or says that it is not there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from duetime.errors import JobNotFound, ScheduleNotFound, UnknownTask, WorkerNotFound
from duetime.model.job import JobId
from duetime.model.schedule import StoredSchedule
from duetime.model.worker import WorkerId

if TYPE_CHECKING:
    from duetime.model.stored import StoredJob
    from duetime.stores.base import Store


async def find_job(store: Store, job_id: JobId) -> StoredJob:
    """Return one job; raises `JobNotFound`."""
    found = await store.get([job_id])
    if not found:
        raise no_job(job_id)
    return found[0]


async def find_schedule(store: Store, name: str) -> StoredSchedule:
    """Return one schedule; raises `ScheduleNotFound` with those that may be meant."""
    found = await store.get_schedules([name])
    if not found:
        raise no_schedule(name, [schedule.name for schedule in await store.schedules()])
    return found[0]


def no_schedule(name: str, known: Iterable[str] = ()) -> ScheduleNotFound:
    """Return the error for a name that no schedule has."""
    meant = closest(name, known)
    offer = (
        f"did you mean {' or '.join(meant)}?" if meant else "`duetime schedules list` shows those there are"
    )
    return ScheduleNotFound(f"there is no schedule {name!r}; {offer}")


def no_job(job_id: JobId) -> JobNotFound:
    """Return the error for a job that is not there."""
    return JobNotFound(f"there is no job {job_id}; it never existed or its record was pruned")


def no_worker(worker_id: WorkerId) -> WorkerNotFound:
    """Return the error for a worker that is not there."""
    return WorkerNotFound(f"there is no worker {worker_id}; it never existed or its record was pruned")


def no_task(task: str, known: Iterable[str]) -> UnknownTask:
    """Return the error for a task that is not registered, with those that may be meant."""
    names = sorted(known)
    meant = closest(task, names)
    offer = f"did you mean {' or '.join(meant)}?" if meant else f"there are: {', '.join(names) or 'none'}"
    return UnknownTask(f"there is no task {task!r} here; {offer}")


def closest(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that someone who wrote `name` may have meant."""
    import difflib

    known = list(names)
    tails = [candidate for candidate in known if candidate.rpartition(".")[2] == name]
    return tails or difflib.get_close_matches(name, known)
