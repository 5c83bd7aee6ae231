"""One execution in progress."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from duetime.model.job import Claim
from duetime.model.outcome import Cancelled, Failed, Interrupted, Succeeded
from duetime.model.time import SECOND, Instant, Micros
from duetime.runtime.running.output import OutputReader, RunOutput
from duetime.stores.base import HandlerTransaction

if TYPE_CHECKING:
    from duetime.runtime.running.transaction import TransactionLender

StopCause: TypeAlias = Cancelled | Interrupted

TransactionVerdict: TypeAlias = Succeeded | Failed | Interrupted

_output_lock = threading.Lock()


class Run:
    """A claim whose handler is being called.

    What most runs never have is left to the class, since one of these is made for every job.
    """

    timeout: Micros | None = None
    """How long the handler may take."""
    task: asyncio.Task[None] | None = None
    interruptible: bool = False
    """Whether the task is inside its handler; elsewhere a cancellation would break our own book-keeping."""
    unmarked: bool = False
    """Whether the store does not know yet that it has started."""
    stopping: StopCause | None = None
    """Why the handler was asked to end, once it was; threads read it, too."""
    cancelled: bool = False
    """Whether the task was cancelled inside its handler."""
    output: RunOutput | None = None
    """Made with the first progress or log line: most runs have none."""

    lent: bool = False
    loan: HandlerTransaction | None = None
    """The handler's transaction while it is open."""
    settling: bool = False
    """Whether the handler's transaction ends the job now, or has: the store may know that before we do."""
    verdict: TransactionVerdict | None = None
    """What the handler's transaction came to; whatever the handler does afterwards changes nothing.

    A success is stored already.
    """

    on_stop: Callable[[str], None] | None = None
    """Told why the handler was asked to end, when that happens; for one that runs in another process."""

    def __init__(
        self,
        claim: Claim,
        started_at: Instant,
        *,
        reader: OutputReader | None = None,
        lender: TransactionLender | None = None,
    ) -> None:
        self.claim = claim
        self.started_at = started_at
        self.reader = reader
        """Passes on the output of the run; `None` once it has ended."""
        self.lender = lender
        """Where the handler can have a transaction of the store's; `None` in a child process."""

    def open_output(self) -> RunOutput | None:
        """Return the run's output; `None` when it has ended. May be called from any thread."""
        reader = self.reader
        if self.output is None and reader is not None:
            with _output_lock:
                if self.output is None:
                    self.output = RunOutput(self.claim, reader)
        return self.output

    @property
    def captures_logs(self) -> bool:
        """Whether what the run logs is kept."""
        reader = self.reader
        return reader is not None and reader.captures_logs

    def stop(self, cause: StopCause, *, grace: Micros = 0, again: bool = False) -> None:
        """Ask the handler to end: it sees a flag at once, and after the grace time a coroutine is cancelled.

        Once, however often it is asked for, so that the handler can clean up in peace; unless `again`.
        """
        first = self.stopping is None
        if self.stopping is None:
            self.stopping = cause
            if self.on_stop is not None:
                self.on_stop(cause.reason)
        if not first and not again:
            return
        if grace:
            asyncio.get_running_loop().call_later(grace / SECOND, self._end_grace)
        else:
            self._cancel()

    def _end_grace(self) -> None:
        if not self.cancelled:
            self._cancel()

    def _cancel(self) -> None:
        if self.task is not None and self.interruptible:
            self.cancelled = True
            self.task.cancel()
