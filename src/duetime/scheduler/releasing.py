"""Unstarted jobs given back by the workers that hold them."""

from __future__ import annotations

import asyncio

from duetime.model import durations
from duetime.model.command import CommandKind, NewCommand
from duetime.model.ids import new_job_id
from duetime.model.instants import SECOND, Micros
from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.stored import StoredJob
from duetime.scheduler.lookup import find_job
from duetime.stores.base import ReleaseAnswer, Store

PATIENCE: Micros = 10 * SECOND
"""How long a worker may take to give a job back."""

_FIRST_LOOK = 0.005
_LAST_LOOK = 0.1


async def ask_back(store: Store, job_id: JobId) -> ReleaseAnswer:
    """Ask the worker that holds a job for it, since nobody else knows whether it starts this very moment.

    Raises `JobNotFound`.
    """
    job = await find_job(store, job_id)
    if (answer := _standing(job)) is not None:
        return answer
    ask = NewCommand(id=new_job_id(), worker=job.worker or "", kind=CommandKind.RELEASE_JOB, job=job_id)
    if not await store.send([ask]):
        # A worker without a lease starts nothing more.
        return (await store.release([job_id], force=False))[job_id]
    try:
        async with asyncio.timeout(PATIENCE / SECOND):
            return await _given_back(store, job)
    except TimeoutError:
        text = (
            f"worker {job.worker} has not given job {job_id} back within {durations.describe(PATIENCE)}; "
            "force=True takes it away all the same, and it may then run twice"
        )
        raise TimeoutError(text) from None


async def _given_back(store: Store, held: StoredJob) -> ReleaseAnswer:
    pause = _FIRST_LOOK
    while (job := await find_job(store, held.id)).fence == held.fence:
        if (answer := _standing(job)) is not None:
            return ReleaseAnswer.RELEASED if answer is ReleaseAnswer.WAITING else answer
        await asyncio.sleep(pause)
        pause = min(_LAST_LOOK, pause * 1.5)
    return ReleaseAnswer.RELEASED


def _standing(job: StoredJob) -> ReleaseAnswer | None:
    """Tell what there is to say about a job without its worker; `None` for one that is held unstarted."""
    if job.state is State.PENDING:
        return ReleaseAnswer.WAITING
    if job.state.terminal:
        return ReleaseAnswer.FINISHED
    return None if job.started_at is None else ReleaseAnswer.STARTED
