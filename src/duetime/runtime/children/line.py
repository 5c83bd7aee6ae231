"""The child's end of the line to its worker."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from typing import BinaryIO

from duetime.runtime.children.messages import Order, Word, read_order, to_line


class Line:
    """Hears orders and says words, one per line, from any thread."""

    def __init__(self, connection: socket.socket, orders: BinaryIO) -> None:
        self._connection = connection
        self._orders = orders
        # The collector may run somebody's `__del__` in here, and that may log.
        self._lock = threading.RLock()
        # A process that a job forks must not keep the line open when this one has died.
        os.register_at_fork(after_in_child=self._let_go)

    def _let_go(self) -> None:
        # Whoever held the lock has not come along.
        self._lock = threading.RLock()
        if (descriptor := self._connection.detach()) >= 0:
            os.close(descriptor)

    def orders(self) -> Iterator[Order]:
        """Yield orders until the worker hangs up or is gone."""
        with contextlib.suppress(OSError):
            for line in self._orders:
                yield read_order(line)

    def say(self, word: Word) -> None:
        """Send a word; when the worker is gone nobody misses it."""
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(to_line(word))
