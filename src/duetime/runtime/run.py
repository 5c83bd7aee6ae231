"""One execution in progress."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TypeAlias

from duetime.model.instants import Instant
from duetime.model.job import Claim
from duetime.model.outcome import Cancelled, Interrupted

StopCause: TypeAlias = Cancelled | Interrupted


@dataclass(slots=True)
class Run:
    """A claim whose handler is being called."""

    claim: Claim
    started_at: Instant
    task: asyncio.Task[None] | None = None
    interruptible: bool = False
    """Whether the task is inside its handler; elsewhere a cancellation would break our own book-keeping."""
    stopping: StopCause | None = None

    def stop(self, cause: StopCause, *, again: bool = False) -> None:
        """Ask the handler to end: a coroutine is cancelled, a thread can only be waited for.

        Once, however often it is asked for, so that the handler can clean up in peace; unless `again`.
        """
        first = self.stopping is None
        if self.stopping is None:
            self.stopping = cause
        if self.task is not None and self.interruptible and (first or again):
            self.task.cancel()
