"""One execution in progress, and its progress and log lines until they are written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from duetime.model.job import Claim
from duetime.model.outcome import Cancelled, Failed, Interrupted, Succeeded
from duetime.model.reports import BoundedLog, NewLogPart, Progress
from duetime.model.secrets import without_secrets
from duetime.model.time import SECOND, Instant, Micros
from duetime.stores.base import HandlerTransaction

if TYPE_CHECKING:
    from duetime.runtime.running.transaction import TransactionLender

StopCause: TypeAlias = Cancelled | Interrupted

_output_lock = threading.Lock()


class OutputReader(Protocol):
    """Passes on the output of runs."""

    captures_logs: bool

    def notice(self, output: RunOutput) -> None:
        """Take note that there is something to read; called from any thread."""
        ...


class UnwrittenOutput(NamedTuple):
    """What is to be written."""

    progress: Progress | None = None
    logs: tuple[NewLogPart, ...] = ()


class RunOutput:
    """Keeps the latest progress of a run, and its log, until they are written."""

    def __init__(self, claim: Claim, reader: OutputReader, *, secrets: tuple[str, ...] = ()) -> None:
        self._token = claim.token
        self._attempt = claim.attempt
        self._reader = reader
        self._secrets = secrets
        self._lock = threading.RLock()
        self._noticed = False
        self._closed = False
        self._progress: Progress | None = None
        self._log = BoundedLog()
        self._unwritten: list[NewLogPart] = []

    def set_progress(self, fraction: float, note: str) -> None:
        """Say how far the run is; the latest counts."""
        with self._lock:
            if not self._closed:
                self._progress = Progress(self._token, fraction, without_secrets(note, self._secrets))
                self.ask_to_be_read()

    def add_log(self, text: str) -> None:
        """Add a record to the log."""
        with self._lock:
            if not self._closed:
                self._log.add(without_secrets(text, self._secrets))
                self.ask_to_be_read()

    def ask_to_be_read(self) -> None:
        """Tell the reader, once until it reads."""
        with self._lock:
            if not self._noticed:
                self._noticed = True
                self._reader.notice(self)

    def read(self) -> UnwrittenOutput:
        """Return what is to be written now; it is returned again until it is `written`."""
        with self._lock:
            self._noticed = False
            # While the store is away the log keeps what there is, within its bounds.
            if self._closed or not self._unwritten:
                self._unwritten += self._log.cut(self._token, self._attempt)
            return UnwrittenOutput(self._progress, tuple(self._unwritten))

    def written(self, output: UnwrittenOutput) -> None:
        """Forget what was written, or what is now for others to write."""
        with self._lock:
            if self._progress is output.progress:
                self._progress = None
            self._unwritten = self._unwritten[len(output.logs) :]
            if self._log.has_more:
                self.ask_to_be_read()

    def close(self) -> None:
        """Have the rest written; nothing is taken after it."""
        with self._lock:
            self._closed = True
            self.ask_to_be_read()

    def take_rest(self) -> UnwrittenOutput:
        """Take over what is left to write; nothing is taken after it."""
        with self._lock:
            self._closed = True
            rest = self.read()
            self.written(rest)
        return rest


class Run:
    """A claim whose handler is being called; what most runs never have is left to the class, since each job has a run."""

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

    secrets: tuple[str, ...] = ()
    """Texts that are masked in whatever is kept or logged of it."""
    lent: bool = False
    loan: HandlerTransaction | None = None
    """The handler's transaction while it is open."""
    settling: bool = False
    """Whether the handler's transaction ends the job now, or has: the store may know that before we do."""
    returned: object = None
    """What the handler has returned, while its dependencies are left."""
    verdict: Succeeded | Failed | Interrupted | None = None
    """What the handler's transaction came to, a success stored already; what the handler does afterwards changes nothing."""

    on_stop: Callable[[str], None] | None = None
    """Told why the handler was asked to end, when that happens; for one that runs in another process."""
    lock_fence: int | None = None
    """The fence of the lock that it holds."""

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
        with _output_lock:
            if self.output is None and self.reader is not None:
                self.output = RunOutput(self.claim, self.reader, secrets=self.secrets)
            return self.output

    def stop(self, cause: StopCause, *, grace: Micros = 0, again: bool = False) -> None:
        """Ask the handler to end: it sees a flag at once, and after the grace time a coroutine is cancelled.

        Once, however often it is asked for, so that the handler can clean up in peace; unless `again`.
        """
        if self.stopping is None:
            self.stopping = cause
            if self.on_stop is not None:
                self.on_stop(cause.reason)
        elif not again:
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


# Each run is an asyncio task with a context of its own, so that nothing has to be set back. The run itself is
# kept, and turned into a JobContext only for handlers that ask: most never do.
current_run: ContextVar[Run] = ContextVar("duetime_current_run")
