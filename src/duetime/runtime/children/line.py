"""The child's end of the line to its worker."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator

from duetime.runtime.children.messages import Order, Word, order_decoder, to_line


class Line:
    """Hears orders and says words, one per line, from any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        # The collector may run somebody's `__del__` in here, and that may log.
        self._lock = threading.RLock()
        # A process that a job forks must not keep the line open when this one has died.
        os.register_at_fork(after_in_child=self._let_go)

    @classmethod
    def from_stdin(cls) -> Line:
        """Take the line from standard input and leave an empty one for the jobs."""
        connection = socket.socket(fileno=os.dup(0))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        return cls(connection)

    def _let_go(self) -> None:
        # Whoever held the lock has not come along.
        self._lock = threading.RLock()
        if (descriptor := self._connection.detach()) >= 0:
            os.close(descriptor)

    def orders(self) -> Iterator[Order]:
        """Yield orders until the worker hangs up or is gone."""
        with contextlib.suppress(OSError), self._connection.makefile("rb") as lines:
            for line in lines:
                yield order_decoder.decode(line)

    def say(self, word: Word) -> None:
        """Send a word; when the worker is gone nobody misses it."""
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(to_line(word))
