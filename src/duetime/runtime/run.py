"""One execution in progress."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TypeAlias

from duetime.model.instants import SECOND, Instant, Micros
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
    """Why the handler was asked to end, once it was; threads read it, too."""

    def stop(self, cause: StopCause, *, grace: Micros = 0, again: bool = False) -> None:
        """Ask the handler to end: it sees a flag at once, and after the grace time a coroutine is cancelled.

        Once, however often it is asked for, so that the handler can clean up in peace; unless `again`.
        """
        first = self.stopping is None
        if self.stopping is None:
            self.stopping = cause
        if not first and not again:
            return
        if grace:
            asyncio.get_running_loop().call_later(grace / SECOND, self._cancel)
        else:
            self._cancel()

    def _cancel(self) -> None:
        if self.task is not None and self.interruptible:
            self.task.cancel()
