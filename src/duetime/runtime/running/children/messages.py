"""How a worker and a child process talk: one line of JSON per message, and a second line that only tells of a death.

A child process, and what its job has started, must not outlive its worker, however that ends. Log records of a child are
sent to its worker and handled there, as if the job had run in it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO, TypeAlias, cast, get_args
from weakref import WeakSet

import msgspec

from duetime.model.job import Claim, Token
from duetime.model.outcome import Failed, Outcome
from duetime.model.time import Instant, Micros
from duetime.runtime.error_text import describe_error
from duetime.runtime.running.handler import TaskLocation, TaskModule
from duetime.runtime.running.run import current_run

log = logging.getLogger("duetime.worker")

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
    lock_fence: int | None = None


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
        return cast("Outcome", msgspec.convert(self.values, _OUTCOMES[self.outcome]))


class RunProgress(msgspec.Struct, frozen=True, tag_field="kind", tag="progress"):
    """How far a job is."""

    token: Token
    fraction: float
    note: str


class ForwardedRecord(msgspec.Struct, frozen=True, tag_field="kind", tag="log"):
    """A log record of the child."""

    token: Token | None
    """Of the job in whose context it was made: others may have left threads behind."""
    attributes: dict[str, Any]
    """As `logging.makeLogRecord` takes them."""


WorkerMessage: TypeAlias = RunJob | StopJob
ChildMessage: TypeAlias = ChildReady | RunEnded | RunProgress | ForwardedRecord

child_message_decoder: msgspec.json.Decoder[ChildMessage] = msgspec.json.Decoder(ChildMessage)


def encode_child_message(message: ChildMessage) -> bytes:
    """Return a message as one line; JSON has no line breaks of its own."""
    return msgspec.json.encode(message) + b"\n"


def encode_worker_message(order: ChildSetup | WorkerMessage) -> bytes:
    """Return an order as one line of ASCII: names of files and arguments of programs need not be Unicode."""
    return json.dumps(msgspec.to_builtins(order)).encode() + b"\n"


def decode_worker_message(line: bytes) -> WorkerMessage:
    """Return the order that was written down."""
    return cast("WorkerMessage", msgspec.convert(json.loads(line), WorkerMessage))


class ChildConnection:
    """Receives orders and sends messages, one per line, from any thread."""

    def __init__(self, connection: socket.socket, orders: BinaryIO) -> None:
        self._connection = connection
        self._orders = orders
        # The garbage collector may run a `__del__` in here, and that may log.
        self._lock = threading.RLock()
        # A process that a job forks must not keep the line open when this one has died.
        os.register_at_fork(after_in_child=self._let_go)

    def _let_go(self) -> None:
        # The thread that held the lock does not exist in this process.
        self._lock = threading.RLock()
        if (descriptor := self._connection.detach()) >= 0:
            os.close(descriptor)

    def orders(self) -> Iterator[WorkerMessage]:
        """Yield orders until the worker hangs up or is gone."""
        with contextlib.suppress(OSError):
            for line in self._orders:
                yield decode_worker_message(line)

    def say(self, message: ChildMessage) -> None:
        """Send a message, or drop it if the worker is gone."""
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(encode_child_message(message))


_F_SETSIG = 10

_open_ends: WeakSet[socket.socket] = WeakSet()


def open_lifeline() -> tuple[socket.socket, socket.socket]:
    """Return our end of a line on which nothing is ever said, and the child's: ours is closed when we die."""
    ours, theirs = socket.socketpair()
    _open_ends.add(ours)
    return ours, theirs


def die_with_worker(lifeline: int) -> None:
    """Be killed, with the whole group, when the other end is closed; elsewhere the end of the orders has to tell."""
    os.set_inheritable(lifeline, False)  # noqa: FBT003 - takes no keyword
    if sys.platform == "linux":
        import fcntl

        # By the kernel: code that never lets go of the interpreter would keep a thread of ours from seeing the end.
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)
    already = select.poll()
    already.register(lifeline, select.POLLIN)
    if already.poll(0):
        os._exit(1)


def _close_inherited() -> None:
    # A process that a handler forks from the worker must not keep the worker's children alive.
    for end in _open_ends:
        end.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)


MAX_TEXT = 16_000
_ATTRIBUTES = (
    "name", "levelno", "levelname", "created", "msecs", "pathname", "filename", "module", "lineno", "funcName",
    "process", "thread", "threadName", "stack_info",
)  # fmt: skip


class LogForwarder(logging.Handler):
    """Forwards every record that it is given."""

    def __init__(self, tell: Callable[[ForwardedRecord], None]) -> None:
        super().__init__()
        self._tell = tell
        self._plain = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        """Tell the text of a record: its arguments may be anything, and need not travel."""
        try:
            text = record.getMessage()
        except Exception as error:  # noqa: BLE001 - a bad format string is reported where the record is read
            text = f"{record.msg!r} cannot be formatted: {describe_error(error)}"
        attributes = {name: getattr(record, name) for name in _ATTRIBUTES} | {
            "msg": text,
            "exc_text": self._plain.formatException(record.exc_info) if record.exc_info else None,
            "processName": "duetime-child",
        }
        run = current_run.get(None)
        bounded = {name: _bounded(value) for name, value in attributes.items()}
        self._tell(ForwardedRecord(None if run is None else run.claim.token, bounded))


def forward_logs(tell: Callable[[ForwardedRecord], None], *, level: int) -> None:
    """Forward the records of the root logger, until the job's own code configures logging otherwise."""
    # Already here `basicConfig` in a job's module finds a handler and adds none, so that nothing is said twice.
    logging.basicConfig(level=level, handlers=[LogForwarder(tell)], force=True)


def handle_forwarded(told: ForwardedRecord) -> None:
    """Give a child's record to the loggers of this process; what they raise is no fault of the child's."""
    try:
        logger = logging.getLogger(told.attributes["name"])
        if logger.isEnabledFor(told.attributes["levelno"]):
            logger.handle(logging.makeLogRecord(told.attributes))
    except Exception:
        with contextlib.suppress(Exception):
            log.exception("a log record of child process %s was refused", told.attributes.get("process"))


def _bounded(value: object) -> object:
    return value[:MAX_TEXT].encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
