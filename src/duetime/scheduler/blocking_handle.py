"""A job that was just enqueued, for callers without an event loop."""

from __future__ import annotations

from typing import Generic, TypeVar

from duetime.model.job import JobId
from duetime.scheduler.handle import JobHandle
from duetime.scheduler.portal import Portal
from duetime.scheduler.records import JobRecord

R = TypeVar("R")


class BlockingHandle(Generic[R]):
    """A job that was just enqueued."""

    __slots__ = ("_handle", "_portal")

    def __init__(self, handle: JobHandle[R], portal: Portal) -> None:
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
