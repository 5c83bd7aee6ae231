"""A job that was just enqueued."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from duetime.errors import JobCancelled, JobFailed, JobSkipped, ResultExpired
from duetime.model.job import JobId
from duetime.model.states import State
from duetime.scheduler import later
from duetime.scheduler.lookup import find_job

if TYPE_CHECKING:
    from duetime.model.stored import StoredJob

R = TypeVar("R")

_FIRST_LOOK = 0.005
_LAST_LOOK = 0.25


class JobHandle(Generic[R]):
    """Refers to a stored job and waits for its result."""

    __slots__ = ("_decode", "_store", "existing", "id", "task")

    def __init__(
        self,
        job_id: JobId,
        task: str,
        store: Callable[[], later.Store],
        decode: Callable[[str], Any],
        existing: bool = False,  # noqa: FBT001, FBT002 - given by name, each takes twice as long to make
    ) -> None:
        self.id = job_id
        self.task = task
        self.existing = existing
        """Whether a job that was there before, under the same key, serves the request."""
        self._store = store
        self._decode = decode

    def __repr__(self) -> str:
        return f"<JobHandle {self.task} {self.id}>"

    async def record(self) -> later.JobRecord:
        """Return the job as it stands; raises `JobNotFound`."""
        return later.JobRecord.from_stored(await self._stored())

    async def result(self, *, timeout: float | None = None) -> R:
        """Wait until the job has ended, retries included, and return what it returned.

        Raises `JobFailed` with the worker's traceback, `JobCancelled`, `JobSkipped`, `ResultExpired`,
        `JobNotFound`, or `TimeoutError` when the time is up first.
        """
        async with asyncio.timeout(timeout):
            return self._read(await self._ended())

    async def _ended(self) -> StoredJob:
        pause = _FIRST_LOOK
        while not (job := await self._stored()).state.terminal:
            await asyncio.sleep(pause)
            pause = min(_LAST_LOOK, pause * 1.5)
        return job

    async def _stored(self) -> StoredJob:
        return await find_job(self._store(), self.id)

    def _read(self, job: StoredJob) -> R:
        match job.state:
            case State.FAILED:
                text = f"job {job.id} of {job.task} failed: {job.error or 'its error is not kept'}"
                raise JobFailed(text, error=job.error, traceback=job.traceback)
            case State.CANCELLED:
                text = f"job {job.id} of {job.task} was cancelled: {job.reason}"
                raise JobCancelled(text)
            case State.SKIPPED:
                text = f"job {job.id} of {job.task} was skipped: {job.reason}"
                raise JobSkipped(text)
            case _:
                pass
        if job.result_error is not None:
            text = f"job {job.id} of {job.task} succeeded, but {job.result_error}"
            raise ResultExpired(text)
        value: R = None if job.result is None else self._decode(job.result)  # type: ignore[assignment]
        return value
