"""Runs one call of a task as a worker would, without a worker and without the scheduler's database."""

from __future__ import annotations

from typing import ParamSpec, TypeVar

from duetime.errors import JobError
from duetime.locks.stored import StoredLocks
from duetime.model.job import NewJob
from duetime.scheduler.job_handle import JobHandle
from duetime.scheduler.task import Request
from duetime.stores.base import Store
from duetime.stores.open import open_store
from duetime.testing.hand import Hand, Ran

P = ParamSpec("P")
R = TypeVar("R")


async def perform(task: Request[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run one call through JSON, both ways, inside a job, and return what it returns or raise what it raises.

    The job lives in a database of its own, in memory, and is tried once; `current_job()` works inside of it.
    What comes after it, such as callbacks, is not run.
    """
    call = task.call(*args, **kwargs)
    job = call.job._replace(due_at=None, delay=0, retries=0)
    store = open_store("sqlite://")
    await store.open()
    try:
        await _run(store, task, job)
        return await JobHandle[R](job.id, job.task, lambda: store, call.decode).result()
    finally:
        await store.close()


async def _run(store: Store, task: Request[P, R], job: NewJob) -> None:
    await store.enqueue([job])
    calls: list[Ran] = []
    locks = StoredLocks("perform", store.sibling)
    hand = Hand(
        store,
        {job.task: task.handler},
        calls=calls,
        queues={job.queue},
        clock=None,
        make_lock=locks.lock,
    )
    await hand.start()
    try:
        await hand.run_due(most=1)
    finally:
        await hand.stop()
    for call in calls:
        if call.error is not None:
            raise call.error
    (stored,) = await store.get([job.id])
    if not stored.state.terminal:
        raise JobError(f"{job.task} put its job back, to be run again later; nothing was returned")
