"""What a worker and a child process tell each other, one line of JSON each, and the child's end of the line."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO, TypeAlias, get_args

import msgspec

from duetime.model.job import Claim, Token
from duetime.model.outcome import Failed, Outcome
from duetime.model.time import Instant, Micros
from duetime.runtime.running.children.task_location import TaskLocation, TaskModule

MAX_LINE = 16 * 1024 * 1024
"""More than any record takes: arguments, results and texts are bounded where they are made."""

_OUTCOMES: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Outcome)}


class ChildSetup(msgspec.Struct, frozen=True):
    """What a child is told first."""

    path: list[str]
    argv: list[str]
    homes: list[TaskModule]
    """Modules to import before the first job asks for them."""
    log_level: int


class RunJob(msgspec.Struct, frozen=True, tag_field="kind", tag="job"):
    """Run this."""

    address: TaskLocation
    claim: Claim
    started_at: Instant
    timeout: Micros | None


class StopJob(msgspec.Struct, frozen=True, tag_field="kind", tag="stop"):
    """The job that runs is asked to end."""

    reason: str


class ChildReady(msgspec.Struct, frozen=True, tag_field="kind", tag="ready"):
    """The child waits for its first job."""


class RunEnded(msgspec.Struct, frozen=True, tag_field="kind", tag="ended"):
    """What came of a job, and how much memory the child holds after it."""

    outcome: str
    values: dict[str, Any]
    memory: int

    @classmethod
    def of(cls, outcome: Outcome, *, memory: int) -> RunEnded:
        """Write an outcome down."""
        if isinstance(outcome, Failed):
            # An exception stays in the process that raised it; its texts go.
            outcome = replace(outcome, cause=None)
        return cls(type(outcome).__name__, msgspec.to_builtins(outcome), memory)

    def read(self) -> Outcome:
        """Return the outcome that was written down."""
        outcome: Outcome = msgspec.convert(self.values, _OUTCOMES[self.outcome])
        return outcome


class RunProgress(msgspec.Struct, frozen=True, tag_field="kind", tag="progress"):
    """How far a job is."""

    token: Token
    fraction: float
    note: str


class ForwardedRecord(msgspec.Struct, frozen=True, tag_field="kind", tag="log"):
    """A log record of the child."""

    token: Token | None
    """Of the job in whose context it was made: others may have left threads behind."""
    name: str
    level: int
    text: str
    created: float
    path: str
    line: int
    function: str
    thread: str
    exception: str | None


WorkerMessage: TypeAlias = RunJob | StopJob
ChildMessage: TypeAlias = ChildReady | RunEnded | RunProgress | ForwardedRecord

child_message_decoder: msgspec.json.Decoder[ChildMessage] = msgspec.json.Decoder(ChildMessage)


def encode_child_message(word: ChildMessage) -> bytes:
    """Return a word as one line; JSON has no line breaks of its own."""
    return msgspec.json.encode(word) + b"\n"


def encode_worker_message(order: ChildSetup | WorkerMessage) -> bytes:
    """Return an order as one line of ASCII: names of files and arguments of programs need not be Unicode."""
    return json.dumps(msgspec.to_builtins(order)).encode() + b"\n"


def decode_worker_message(line: bytes) -> WorkerMessage:
    """Return the order that was written down."""
    order: WorkerMessage = msgspec.convert(json.loads(line), WorkerMessage)
    return order


class ChildConnection:
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

    def orders(self) -> Iterator[WorkerMessage]:
        """Yield orders until the worker hangs up or is gone."""
        with contextlib.suppress(OSError):
            for line in self._orders:
                yield decode_worker_message(line)

    def say(self, word: ChildMessage) -> None:
        """Send a word; when the worker is gone nobody misses it."""
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(encode_child_message(word))
