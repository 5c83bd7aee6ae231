"""What one run says, kept until the store has it; may be used from any thread."""

from __future__ import annotations

import threading
from typing import NamedTuple, Protocol

from duetime.model.job import Claim
from duetime.model.log_book import LogBook
from duetime.model.reports import NewLogPart, Progress


class Ears(Protocol):
    """Whoever passes on what runs say."""

    captures_logs: bool

    def hear(self, voice: Voice) -> None:
        """Take note that somebody has something to say; called from any thread."""
        ...


class Words(NamedTuple):
    """What is to be written."""

    progress: Progress | None = None
    logs: tuple[NewLogPart, ...] = ()


SILENCE = Words()


class Voice:
    """Holds what was said last about progress, and the log, within bounds."""

    def __init__(self, claim: Claim, ears: Ears) -> None:
        self._token = claim.token
        self._attempt = claim.attempt
        self._ears = ears
        self._lock = threading.Lock()
        self._waiting = False
        self._closed = False
        self._progress: Progress | None = None
        self._book = LogBook()
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

    def words(self) -> Words:
        """Return what is to be written now; until it was `heard`, it will be returned again."""
        with self._lock:
            self._waiting = False
            # While the store is away the book keeps what there is, within its bounds.
            if self._closed or not self._unheard:
                self._unheard += [
                    NewLogPart(self._token, self._attempt, *piece) for piece in self._book.cut()
                ]
            return Words(self._progress, tuple(self._unheard))

    def heard(self, words: Words) -> None:
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

    def last_words(self) -> Words:
        """Take over what is left to say; nothing comes after it."""
        with self._lock:
            self._closed = True
        words = self.words()
        self.heard(words)
        return words
