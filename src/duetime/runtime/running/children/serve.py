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
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

import msgspec

from duetime.errors import InvalidArguments
from duetime.model.outcome import Cancelled, Outcome
from duetime.runtime.error_text import describe_error
from duetime.runtime.running.call_outcome import failure, outcome_of_call, undecodable_outcome
from duetime.runtime.running.children import messages
from duetime.runtime.running.handler import Handler, TaskLocation, find_handler, load_module
from duetime.runtime.running.run import Run, RunOutput, UnwrittenOutput, current_run
from duetime.runtime.running.surroundings import surrounded

log = logging.getLogger("duetime.worker")

_EXIT_GRACE = 5.0
"""Seconds that threads of the job's code may keep a child which was told to end."""


def main(connection: socket.socket, orders: BinaryIO, first: dict[str, Any], lifeline: int) -> None:
    """Serve the worker at the other end of a connection, which was standard input."""
    messages.die_with_worker(lifeline)
    # Jobs must not read what is meant for us.
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    setup = msgspec.convert(first, messages.ChildSetup)
    sys.argv[:] = setup.argv
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ignore_signal)
    line = messages.ChildConnection(connection, orders)
    messages.forward_logs(line.say, level=setup.log_level)
    ChildServer(line).serve(setup)


class ChildServer:
    """Runs jobs in the main thread while another one listens."""

    def __init__(self, line: messages.ChildConnection) -> None:
        self._line = line
        self._output = ChildOutputForwarder(line)
        self._jobs: queue.SimpleQueue[tuple[messages.RunJob, Run] | None] = queue.SimpleQueue()
        self._busy = True

    def serve(self, setup: messages.ChildSetup) -> None:
        """Import what the jobs will need, then run them until the worker hangs up."""
        threading.Thread(target=self._listen, name="duetime-line", daemon=True).start()
        for home in setup.homes:
            try:
                load_module(home)
            except BaseException as error:  # noqa: BLE001 - the job that needs it tells why, each time
                log.debug("importing %s failed: %s", home.module, describe_error(error))
        self._busy = False
        self._line.say(messages.ChildReady())
        while (work := self._jobs.get()) is not None:
            outcome = copy_context().run(_run_job, *work)
            work[1].reader = None
            if work[1].output is not None:
                self._output.forward(work[1].output.take_rest())
            _flush()
            self._busy = False
            self._line.say(messages.RunEnded.of(outcome, memory=resident_memory()))

    def _listen(self) -> None:
        try:
            self._follow()
        except Exception:
            # The worker would wait for the job for ever.
            log.exception("an order of the worker cannot be read; after an upgrade, restart the worker")
            os._exit(1)

    def _follow(self) -> None:
        run: Run | None = None
        for order in self._line.orders():
            if isinstance(order, messages.RunJob):
                run = Run(order.claim, order.started_at, reader=self._output)
                run.timeout, run.lock_fence = order.timeout, order.lock_fence
                self._busy = True
                self._jobs.put((order, run))
            elif run is not None:
                run.stop(Cancelled(order.reason))
        if self._busy:
            # There is no one to take the result, and another worker may run the job soon.
            os.killpg(0, signal.SIGKILL)
        self._jobs.put(None)
        time.sleep(_EXIT_GRACE)
        os._exit(1)


def _run_job(job: messages.RunJob, run: Run) -> Outcome:
    current_run.set(run)
    try:
        handler = _find_task(job.address, job.claim.task)
    except BaseException as error:  # noqa: BLE001 - whatever a module does when it is imported
        text = f"{job.address.home.module} cannot be imported in a child process: {describe_error(error)}"
        return failure(error, error=text)
    try:
        args, kwargs = handler.arguments.decode(job.claim.payload)
    except InvalidArguments as error:
        return undecodable_outcome(error)
    return outcome_of_call(partial(surrounded(handler).function, *args, **kwargs))


def _find_task(address: TaskLocation, task: str) -> Handler:
    handler = find_handler(load_module(address.home), address.name, task=task)
    if handler is None:
        raise LookupError(f"it has no {address.name}; define it in every process that imports the module")
    return handler


def _flush() -> None:
    """Let others see what the job has printed, unless the stream is closed or no one reads it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _ignore_signal(number: int, frame: FrameType | None) -> None:
    """Leave it to the worker to end this process; programs that a job starts do not inherit this, unlike SIG_IGN."""


_PROGRESS_PAUSE = 0.1
"""Seconds between messages about progress."""


class ChildOutputForwarder:
    """Sends the progress of jobs to the worker, but not every change."""

    captures_logs = False
    """They take another way: the worker's own loggers collect them."""

    def __init__(self, line: messages.ChildConnection) -> None:
        self._line = line
        self._noticed: queue.SimpleQueue[RunOutput] = queue.SimpleQueue()
        threading.Thread(target=self._forward_all, name="duetime-progress", daemon=True).start()

    def notice(self, output: RunOutput) -> None:
        """Forward the latest progress, now or after a pause."""
        self._noticed.put(output)

    def forward(self, output: UnwrittenOutput) -> None:
        """Forward progress at once."""
        if (progress := output.progress) is not None:
            self._line.say(messages.RunProgress(progress.token, progress.fraction, progress.note))

    def _forward_all(self) -> None:
        while True:
            output = self._noticed.get()
            unwritten = output.read()
            self.forward(unwritten)
            output.written(unwritten)
            time.sleep(_PROGRESS_PAUSE)


def resident_memory() -> int:
    """Return the resident set in bytes; where the system does not tell, the largest there has been."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return _peak_memory()


def _peak_memory() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
