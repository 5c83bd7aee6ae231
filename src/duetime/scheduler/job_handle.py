"""A job that was just enqueued: wait for its result, in an event loop or without one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from duetime import errors
from duetime.errors import StoreUnavailable
from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.text import counted, shown
from duetime.scheduler.lookup import find_job, growing_pauses
from duetime.scheduler.processes.portal import BlockingPortal
from duetime.scheduler.records import JobRecord
from duetime.stores.base.protocols import Store

log = logging.getLogger("duetime.store")

R = TypeVar("R")

_LONGEST_PAUSE = 0.25


class JobHandle(Generic[R]):
    """Refers to a stored job and waits for its result."""

    __slots__ = ("_decode", "_store", "existing", "id", "task")

    def __init__(
        self,
        job_id: JobId,
        task: str,
        store: Callable[[], Store],
        decode: Callable[[str], Any],
        asked: JobId | None = None,
    ) -> None:
        self.id = job_id
        self.task = task
        self.existing = asked is not None and asked != job_id
        """Whether a job that was there before, under the same key, serves the request."""
        self._store = store
        self._decode = decode

    def __repr__(self) -> str:
        return f"<JobHandle {self.task} {self.id}>"

    async def record(self) -> JobRecord:
        """Return the job as it stands; raises `JobNotFound`."""
        return JobRecord.from_stored(await self._stored())

    async def result(self, *, timeout: float | None = None) -> R:
        """Wait until the job has ended, retries included, and return what it returned.

        It also waits while the database cannot be reached. Raises `JobFailed` with the worker's traceback,
        `JobCancelled`, `JobSkipped`, `ResultExpired`, `ResultNotStored`, `ResultUnreadable`, `JobNotFound`, or
        `TimeoutError` when the time is up first.
        """
        away: list[StoreUnavailable] = []
        try:
            async with asyncio.timeout(timeout):
                job = await self._ended(away)
        except TimeoutError:
            waited = counted(timeout or 0, "second")
            text = f"job {self.id} of {self.task} has not ended within {waited}; `duetime explain` with its id says why"
            raise TimeoutError(text) from (away[-1] if away else None)
        return self._read(job)

    async def _ended(self, away: list[StoreUnavailable]) -> StoredJob:
        """Read the job until it has ended; `away` has the error of the last read, if that failed."""
        pauses = growing_pauses(_LONGEST_PAUSE)
        while True:
            try:
                job = await self._stored()
            except StoreUnavailable as error:
                if not away:
                    log.warning("waiting for job %s, but the database cannot be asked: %s", self.id, error)
                away[:] = [error]
            else:
                away.clear()
                if job.state.terminal:
                    return job
            await asyncio.sleep(next(pauses))

    async def _stored(self) -> StoredJob:
        return await find_job(self._store(), self.id)

    def _read(self, job: StoredJob) -> R:
        called = f"job {job.id} of {job.task}"
        if job.state is State.FAILED:
            raise errors.JobFailed(
                f"{called} failed: {job.error or 'its error is not kept'}",
                error=job.error,
                traceback=job.traceback,
            )
        if job.state is State.CANCELLED:
            raise errors.JobCancelled(f"{called} was cancelled: {job.reason}")
        if job.state is State.SKIPPED:
            raise errors.JobSkipped(f"{called} was skipped: {job.reason}")
        if job.lost_result is not None:
            raise errors.ResultNotStored(f"{called} succeeded, but {job.lost_result}")
        if job.result_error is not None:
            raise errors.ResultExpired(f"{called} succeeded, but {job.result_error}")
        if job.result is None:
            return None  # type: ignore[return-value]  # what its task returns
        try:
            value: R = self._decode(job.result)
        except (ValueError, RecursionError) as error:
            raise errors.ResultUnreadable(
                f"{called} succeeded, but its stored result cannot be read: {shown(error)}"
            ) from error
        return value


class BlockingHandle(Generic[R]):
    """A job that was just enqueued, for callers without an event loop."""

    __slots__ = ("_handle", "_portal")

    def __init__(self, handle: JobHandle[R], portal: BlockingPortal) -> None:
        self._handle = handle
        self._portal = portal

    def __repr__(self) -> str:
        return f"<BlockingHandle {self._handle.task} {self.id}>"

    @property
    def id(self) -> JobId:
        """The job's id."""
        return self._handle.id

    @property
    def existing(self) -> bool:
        """Whether a job that was there before, under the same key, serves the request."""
        return self._handle.existing

    def record(self) -> JobRecord:
        """Return the job as it stands; raises `JobNotFound`."""
        return self._portal.run(self._handle.record())

    def result(self, *, timeout: float | None = None) -> R:
        """Wait until the job has ended and return what it returned; raises as `JobHandle.result` does."""
        return self._portal.run(self._handle.result(timeout=timeout))
