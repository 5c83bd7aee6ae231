"""What a child process does: finds its tasks, runs one job after the other, and ends with its worker."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from contextvars import copy_context
from types import FrameType
from typing import Any, BinaryIO

import msgspec

from duetime.errors import InvalidArguments
from duetime.model.outcome import Cancelled, Failed, Outcome
from duetime.runtime.children import logs
from duetime.runtime.children.address import Address, find, load
from duetime.runtime.children.ears import LineEars
from duetime.runtime.children.line import Line
from duetime.runtime.children.memory import resident
from duetime.runtime.children.messages import Ended, Job, Ready, Setup
from duetime.runtime.children.orphan import end_with_worker
from duetime.runtime.context import current
from duetime.runtime.failure import describe_error, describe_traceback
from duetime.runtime.handler import Handler
from duetime.runtime.run import Run
from duetime.runtime.verdict import raised, returned, undecodable

log = logging.getLogger("duetime.worker")

_LAST_WAIT = 5.0
"""Seconds that threads of the job's code may keep a child which was told to end."""


def main(connection: socket.socket, orders: BinaryIO, first: dict[str, Any], lifeline: int) -> None:
    """Serve the worker at the other end of a connection, which was standard input."""
    end_with_worker(lifeline)
    _empty_stdin()
    setup = msgspec.convert(first, Setup)
    sys.argv[:] = setup.argv
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ignore)
    line = Line(connection, orders)
    logs.forward(line.say, level=setup.log_level)
    Server(line).serve(setup)


class Server:
    """Runs jobs in the main thread while another one listens."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._ears = LineEars(line)
        self._jobs: queue.SimpleQueue[tuple[Job, Run] | None] = queue.SimpleQueue()
        self._busy = True

    def serve(self, setup: Setup) -> None:
        """Import what the jobs will need, then run them until the worker hangs up."""
        threading.Thread(target=self._listen, name="duetime-line", daemon=True).start()
        for home in setup.homes:
            try:
                load(home)
            except BaseException as error:  # noqa: BLE001 - the job that needs it tells why, each time
                log.debug("importing %s failed: %s", home.module, describe_error(error))
        self._busy = False
        self._line.say(Ready())
        while (work := self._jobs.get()) is not None:
            outcome = copy_context().run(_execute, *work)
            self._ears.say(work[1].last_words())
            _flush()
            self._busy = False
            self._line.say(Ended.of(outcome, memory=resident()))

    def _listen(self) -> None:
        try:
            self._follow()
        except Exception:
            # Whoever waits for the job would wait for ever.
            log.exception(
                "an order of the worker cannot be read; if Duetime was upgraded, restart the worker"
            )
            os._exit(1)

    def _follow(self) -> None:
        run: Run | None = None
        for order in self._line.orders():
            if isinstance(order, Job):
                run = Run(order.claim, order.started_at, timeout=order.timeout, ears=self._ears)
                self._busy = True
                self._jobs.put((order, run))
            elif run is not None:
                run.stop(Cancelled(order.reason))
        if self._busy:
            # Nobody is left to take the result, and another worker may run the job soon.
            os.killpg(0, signal.SIGKILL)
        self._jobs.put(None)
        time.sleep(_LAST_WAIT)
        os._exit(1)


def _execute(job: Job, run: Run) -> Outcome:
    current.set(run)
    try:
        handler = _find(job.address, job.claim.task)
    except BaseException as error:  # noqa: BLE001 - whatever a module does when it is imported
        return Failed(
            error=f"{job.address.home.module} cannot be imported in a child process: {describe_error(error)}",
            traceback=describe_traceback(error),
        )
    try:
        args, kwargs = handler.arguments.decode(job.claim.payload)
    except InvalidArguments as error:
        return undecodable(error)
    try:
        return returned(handler.function(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001 - SystemExit of a handler is its failure, not ours
        return raised(error)


def _find(address: Address, task: str) -> Handler:
    handler = find(load(address.home), address.name, task=task)
    if handler is None:
        text = f"it has no {address.name} there; define it whoever imports the module"
        raise LookupError(text)
    return handler


def _empty_stdin() -> None:
    """Keep jobs from reading what is meant for us."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _flush() -> None:
    """Let others see what the job has printed, unless it has closed the stream, or nobody reads it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _ignore(number: int, frame: FrameType | None) -> None:
    """Leave it to the worker to end this process; programs that a job starts do not inherit this, unlike SIG_IGN."""
