"""One execution in progress, with the progress and log that it has not stored yet."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from duetime.model.job import Claim
from duetime.model.outcome import Cancelled, Failed, Interrupted, Outcome, Settled, Settlement
from duetime.model.reports import BoundedLog, NewLogPart, Progress
from duetime.model.time import SECOND, Instant, Micros

if TYPE_CHECKING:
    from duetime.stores.base import HandlerTransaction


class OutputListener(Protocol):
    """Whoever passes on what runs say."""

    captures_logs: bool

    def hear(self, voice: RunOutput) -> None:
        """Take note that somebody has something to say; called from any thread."""
        ...


class UnwrittenOutput(NamedTuple):
    """What is to be written."""

    progress: Progress | None = None
    logs: tuple[NewLogPart, ...] = ()


NO_OUTPUT = UnwrittenOutput()


class RunOutput:
    """Holds what was said last about progress, and the log, within bounds."""

    def __init__(self, claim: Claim, ears: OutputListener) -> None:
        self._token = claim.token
        self._attempt = claim.attempt
        self._ears = ears
        self._lock = threading.Lock()
        self._waiting = False
        self._closed = False
        self._progress: Progress | None = None
        self._book = BoundedLog()
        self._unheard: list[NewLogPart] = []

    def tell(self, fraction: float, note: str) -> None:
        """Say how far the run is; the latest counts."""
        with self._lock:
            if self._closed:
                return
            self._progress = Progress(self._token, fraction, note)
        self.call()

    def log(self, text: str) -> None:
        """Add a record to the log."""
        with self._lock:
            if self._closed:
                return
            self._book.add(text)
        self.call()

    def call(self) -> None:
        """Ask to be listened to; once, however much there is to say."""
        with self._lock:
            if self._waiting:
                return
            self._waiting = True
        self._ears.hear(self)

    def words(self) -> UnwrittenOutput:
        """Return what is to be written now; until it was `heard`, it will be returned again."""
        with self._lock:
            self._waiting = False
            # While the store is away the book keeps what there is, within its bounds.
            if self._closed or not self._unheard:
                self._unheard += [
                    NewLogPart(self._token, self._attempt, *piece) for piece in self._book.cut()
                ]
            return UnwrittenOutput(self._progress, tuple(self._unheard))

    def heard(self, words: UnwrittenOutput) -> None:
        """Forget what was written, or what somebody else has undertaken to write."""
        with self._lock:
            if self._progress is words.progress:
                self._progress = None
            self._unheard = self._unheard[len(words.logs) :]
            more = self._book.has_more
        if more:
            self.call()

    def close(self) -> None:
        """Say the end of the log, and nothing after it."""
        with self._lock:
            self._closed = True
        self.call()

    def last_words(self) -> UnwrittenOutput:
        """Take over what is left to say; nothing comes after it."""
        with self._lock:
            self._closed = True
        words = self.words()
        self.heard(words)
        return words


StopCause: TypeAlias = Cancelled | Interrupted

TransactionVerdict: TypeAlias = Settled | Failed | Interrupted

_output_lock = threading.Lock()


class TransactionSource(Protocol):
    """Lends transactions to handlers, and says what their success is to be recorded as."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where transactions begin and end, also those that outlive their run."""
        ...

    def bound(self, timeout: Micros | None) -> Micros:
        """Return how long a transaction may be open; raises `InvalidOption` for one that asks for too much."""
        ...

    def lend(self, timeout: Micros) -> HandlerTransaction:
        """Return a transaction that is yet to begin."""
        ...

    def settlement(self, claim: Claim, outcome: Outcome, *, started_at: Instant | None) -> Settlement:
        """Decide what an outcome means."""
        ...


class Run:
    """A claim whose handler is being called.

    What most runs never have is left to the class: one of these is made for every job.
    """

    task: asyncio.Task[None] | None = None
    interruptible: bool = False
    """Whether the task is inside its handler; elsewhere a cancellation would break our own book-keeping."""
    stopping: StopCause | None = None
    """Why the handler was asked to end, once it was; threads read it, too."""
    cancelled: bool = False
    """Whether the task was cancelled inside its handler."""
    voice: RunOutput | None = None
    """Made with the first word: most runs say nothing."""

    lent: bool = False
    loan: HandlerTransaction | None = None
    """The handler's transaction while it is open."""
    settling: bool = False
    """Whether the handler's transaction ends the job now, or has: the store may know that before we do."""
    verdict: TransactionVerdict | None = None
    """What the handler's transaction came to; whatever the handler does afterwards changes nothing."""

    on_stop: Callable[[str], None] | None = None
    """Told why the handler was asked to end, when that happens; for one that runs in another process."""

    def __init__(
        self,
        claim: Claim,
        started_at: Instant,
        *,
        timeout: Micros | None = None,
        ears: OutputListener | None = None,
        lender: TransactionSource | None = None,
    ) -> None:
        self.claim = claim
        self.started_at = started_at
        self.timeout = timeout
        self.ears = ears
        """Whoever passes on what the run says; nobody, once it has ended."""
        self.lender = lender
        """Where the handler can have a transaction of the store's; nowhere, in a child process."""

    def speak(self) -> RunOutput | None:
        """Return the run's voice; `None` when nobody listens. May be called from any thread."""
        ears = self.ears
        if self.voice is None and ears is not None:
            with _output_lock:
                if self.voice is None:
                    self.voice = RunOutput(self.claim, ears)
        return self.voice

    @property
    def logs(self) -> bool:
        """Whether somebody wants what the run logs."""
        ears = self.ears
        return ears is not None and ears.captures_logs

    def fall_silent(self) -> None:
        """Let the rest of what was said be written without a settlement; nothing comes after it."""
        self.ears = None
        if self.voice is not None:
            self.voice.close()

    def last_words(self) -> UnwrittenOutput:
        """Return what was said and not written yet, for the settlement; nothing comes after it."""
        self.ears = None
        return NO_OUTPUT if self.voice is None else self.voice.last_words()

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
