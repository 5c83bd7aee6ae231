"""One execution in progress."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from duetime.model.instants import SECOND, Instant, Micros
from duetime.model.job import Claim
from duetime.model.outcome import Cancelled, Failed, Interrupted, Outcome, Settled, Settlement
from duetime.runtime.voice import SILENCE, Ears, Voice, Words

if TYPE_CHECKING:
    from duetime.stores.base import Loan

StopCause: TypeAlias = Cancelled | Interrupted

Verdict: TypeAlias = Settled | Failed | Interrupted

_first_word = threading.Lock()


class Lender(Protocol):
    """Lends transactions to handlers, and says what their success is to be recorded as."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where transactions begin and end, also those that outlive their run."""
        ...

    def bound(self, timeout: Micros | None) -> Micros:
        """Return how long a transaction may be open; raises `InvalidOption` for one that asks for too much."""
        ...

    def lend(self, timeout: Micros) -> Loan:
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
    voice: Voice | None = None
    """Made with the first word: most runs say nothing."""

    lent: bool = False
    loan: Loan | None = None
    """The handler's transaction while it is open."""
    settling: bool = False
    """Whether the handler's transaction ends the job now, or has: the store may know that before we do."""
    verdict: Verdict | None = None
    """What the handler's transaction came to; whatever the handler does afterwards changes nothing."""

    on_stop: Callable[[str], None] | None = None
    """Told why the handler was asked to end, when that happens; for one that runs in another process."""

    def __init__(
        self,
        claim: Claim,
        started_at: Instant,
        *,
        timeout: Micros | None = None,
        ears: Ears | None = None,
        lender: Lender | None = None,
    ) -> None:
        self.claim = claim
        self.started_at = started_at
        self.timeout = timeout
        self.ears = ears
        """Whoever passes on what the run says; nobody, once it has ended."""
        self.lender = lender
        """Where the handler can have a transaction of the store's; nowhere, in a child process."""

    def speak(self) -> Voice | None:
        """Return the run's voice; `None` when nobody listens. May be called from any thread."""
        ears = self.ears
        if self.voice is None and ears is not None:
            with _first_word:
                if self.voice is None:
                    self.voice = Voice(self.claim, ears)
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

    def last_words(self) -> Words:
        """Return what was said and not written yet, for the settlement; nothing comes after it."""
        self.ears = None
        return SILENCE if self.voice is None else self.voice.last_words()

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
