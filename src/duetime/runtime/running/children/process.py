"""The child processes of a worker: started ahead, used again, replaced when they are worn, killed one by one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import Context, copy_context
from multiprocessing import spawn
from typing import cast

from duetime.errors import ConfigError
from duetime.model.job import Token
from duetime.model.outcome import Failed, Outcome
from duetime.model.time import SECOND
from duetime.runtime.error_text import describe_error
from duetime.runtime.running.children import messages
from duetime.runtime.running.handler import (
    Handler,
    TaskLocation,
    TaskModule,
    locate_task,
    module_being_imported,
)
from duetime.runtime.running.run import current_run

# The path has to be known before anything can be imported by it. It comes over the line: a command line has a limit.
_BOOT = (
    "import json, os, socket, sys; line = socket.socket(fileno=os.dup(0)); orders = line.makefile('rb'); "
    "setup = json.loads(orders.readline() or sys.exit(1)); sys.path[:] = setup['path']; "
    "from duetime.runtime.running.children.serve import main; main(line, orders, setup, int(sys.argv[1]))"
)


def launch_process() -> tuple[subprocess.Popen[bytes], socket.socket, socket.socket]:
    """Start a fresh interpreter; return it, the line over which it takes orders, and a lifeline that kills it if closed."""
    flags = cast("Callable[[], list[str]]", vars(subprocess)["_args_from_interpreter_flags"])()
    line, its_line = socket.socketpair()
    held, its_lifeline = messages.open_lifeline()
    with its_line, its_lifeline:
        try:
            # Safe from what lies in the current folder (-P), and a group of its own: Ctrl-C in a terminal leaves it
            # alone, and a kill takes along what its job started.
            process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [spawn.get_executable(), *flags, "-P", "-c", _BOOT, str(its_lifeline.fileno())],
                stdin=its_line.fileno(),
                pass_fds=[its_lifeline.fileno()],
                process_group=0,
            )
        except BaseException:
            line.close()
            held.close()
            raise
    return process, line, held


def setup_line(homes: Iterable[TaskModule]) -> bytes:
    """Return the first line that a child has to read."""
    path = [entry for entry in sys.path if isinstance(entry, str)]
    setup = messages.ChildSetup(path=path, argv=sys.argv, homes=list(homes), log_level=logging.root.level)
    return messages.encode_worker_message(setup)


log = logging.getLogger("duetime.worker")

_LONGEST_START = 60.0
_LONGEST_EXIT_CHECK = 0.1
"""The longest pause between checks whether a process is gone, in seconds; the first checks come sooner."""
_LEAVE_TIMEOUT = 6.0
"""How long a child may take to exit when it is told to, in seconds; a little more than it gives its own threads."""


class ChildProcess:
    """Runs one job at a time; when the process dies, that is a failure of the job it ran."""

    def __init__(self, homes: Iterable[TaskModule]) -> None:
        setup = setup_line(homes)
        self._process, self._socket, self._lifeline = launch_process()
        self.pid = self._process.pid
        self.jobs = 0
        """How many jobs it has ended."""
        self.memory = 0
        """How many bytes it held after the last one."""
        self.free = True
        """Whether it is idle."""
        self.ready = asyncio.Event()
        """Set when it has started, or died."""
        self.death: str | None = None
        """How the process ended, once it has."""
        self._writer: asyncio.StreamWriter | None = None
        self._answer: asyncio.Future[Outcome] | None = None
        self._stop: messages.StopJob | None = None
        self._context = Context()
        self._token: Token | None = None
        self._killed = False
        self._dying = False
        self._life = asyncio.create_task(self._live(setup), name=f"duetime-child-{self.pid}")

    async def call(self, job: messages.RunJob) -> Outcome:
        """Run a job and return what came of it; when it takes too long from its start, kill it: `TimeoutError`."""
        self.free = False
        self._stop = None
        try:
            async with asyncio.timeout(_LONGEST_START):
                await self.ready.wait()
        except TimeoutError:
            return self._crash(f"did not start within {_LONGEST_START:.0f} seconds")
        if self.death is not None:
            return self._crash(f"died while it started: {self.death}")
        self._context = copy_context()
        self._token = job.claim.token
        self._answer = asyncio.get_running_loop().create_future()
        self._tell(job)
        if self._stop is not None:
            self._tell(self._stop)
        await asyncio.wait({self._answer}, timeout=None if job.timeout is None else job.timeout / SECOND)
        if not self._answer.done():
            self.kill()
            # Then all that it sent before has been read: the answer may have waited for this loop.
            await self.ended()
            if not self.free:
                raise TimeoutError
        return self._answer.result()

    def stop(self, reason: str) -> None:
        """Ask the job to end, as soon as it runs."""
        self._stop = messages.StopJob(reason)
        if self._answer is not None:
            self._tell(self._stop)

    def kill(self) -> None:
        """Kill the process and whatever it has started."""
        self._killed = True
        self._kill_group()

    def _kill_group(self) -> None:
        if not self._dying:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def ended(self) -> None:
        """Wait until the process is gone."""
        await asyncio.wait({self._life})

    async def leave(self) -> None:
        """Let the process end by itself, or kill it if it takes too long."""
        if self._writer is None:
            self.kill()
        elif not self._dying:
            self._writer.write_eof()
        await asyncio.wait({self._life}, timeout=_LEAVE_TIMEOUT)
        self.kill()
        await self.ended()

    def _tell(self, order: messages.WorkerMessage) -> None:
        if self._writer is not None and not self._dying:
            self._writer.write(messages.encode_worker_message(order))

    async def _live(self, setup: bytes) -> None:
        try:
            limit = messages.MAX_LINE
            reader, self._writer = await asyncio.open_unix_connection(sock=self._socket, limit=limit)
            self._writer.write(setup)
            # If the child dies in the middle of a message, the connection ends as it does otherwise.
            while (line := await reader.readline()).endswith(b"\n"):
                self._receive(messages.child_message_decoder.decode(line))
        except ConnectionError:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it said, its job must have an end
            self.kill()
            log.error("child process %d cannot be understood: %s", self.pid, describe_error(error))  # noqa: TRY400
        finally:
            # Before the process is waited for: until then its id, which is that of its group, cannot be reused.
            self._kill_group()
            self._dying = True
            self._lifeline.close()
            if self._writer is not None:
                self._writer.close()
            await self._bury()

    async def _bury(self) -> None:
        pause = 0.001
        # Not in a thread of the loop's: the jobs may have taken them all.
        while (code := self._process.poll()) is None:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_EXIT_CHECK)
        self.death = _describe_exit(code, by_worker=self._killed)
        self.ready.set()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(self._crash(f"died while it ran the job: {self.death}"))

    def _crash(self, what: str) -> Failed:
        return Failed(error=f"child process {self.pid} {what}", reason="crashed child")

    def _receive(self, message: messages.ChildMessage) -> None:
        match message:
            case messages.ChildReady():
                self.ready.set()
            case messages.RunEnded():
                self.jobs += 1
                self.memory = message.memory
                self.free = True
                if self._answer is not None and not self._answer.done():
                    self._answer.set_result(message.read())
            case messages.RunProgress():
                run = self._context_of(message).get(current_run)
                if run is not None and (output := run.open_output()) is not None:
                    output.set_progress(message.fraction, message.note)
            case messages.ForwardedRecord():
                # In the context of the job, so that it is collected with the log of the job.
                self._context_of(message).run(messages.handle_forwarded, message)

    def _context_of(self, message: messages.RunProgress | messages.ForwardedRecord) -> Context:
        return self._context if message.token == self._token else Context()


def _describe_exit(code: int, *, by_worker: bool) -> str:
    if code >= 0:
        return f"exit code {code}"
    if by_worker and -code == signal.SIGKILL:
        return "killed by its worker"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (perhaps for lack of memory)" if -code == signal.SIGKILL else ""
    return f"killed by {name}{hint}"


_CLOSE_TIMEOUT = 10.0
"""Seconds for the children to end, of which each may take a part to leave by itself."""


class ChildPool:
    """Lends child processes, and keeps one spare ready.

    The worker's slots bound how many are lent at once. A process is started only when one is lent or returned, so that
    children that die at once are not restarted for ever.
    """

    def __init__(
        self, handlers: Mapping[str, Handler], *, max_jobs: int | None = None, max_memory: int | None = None
    ) -> None:
        self._handlers = handlers
        self._max_jobs = math.inf if max_jobs is None else max_jobs
        self._max_memory = math.inf if max_memory is None else max_memory
        self._addresses: dict[str, TaskLocation] = {}
        self._idle: list[ChildProcess] = []
        self._lent: set[ChildProcess] = set()
        self._leaving: dict[asyncio.Task[None], ChildProcess] = {}
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """The processes that run or wait."""
        return [child.pid for child in (*self._lent, *self._idle) if child.death is None]

    def start(self) -> None:
        """Start a first child if there is a task for it; raises when a task cannot be found by one."""
        cpu = [handler for handler in self._handlers.values() if handler.options.cpu]
        if not cpu:
            return
        if sys.platform == "win32":
            text = f"cpu tasks need a POSIX system; leave out cpu=True at {cpu[0].name}, or run this worker elsewhere"
            raise ConfigError(text)
        if (module := module_being_imported()) is not None:
            why = f"{module} starts a worker when a child process imports it for its tasks"
            raise ConfigError(f'{why}; start it below `if __name__ == "__main__":`')
        for handler in cpu:
            self.address(handler)
        self._keep_spare()

    def address(self, handler: Handler) -> TaskLocation:
        """Return where children find a task, or raise `InvalidTask`."""
        if handler.name not in self._addresses:
            self._addresses[handler.name] = locate_task(handler)
        return self._addresses[handler.name]

    def lend(self) -> ChildProcess:
        """Return a child that is free, ready if there is one; raises `OSError` when none can be started."""
        alive = [child for child in self._idle if child.death is None]
        self._idle = sorted(alive, key=lambda child: child.ready.is_set())
        child = self._idle.pop() if self._idle else self._start()
        self._lent.add(child)
        self._keep_spare()
        return child

    async def take_back(self, child: ChildProcess) -> None:
        """Keep a child for the next job, or replace it; one that owes its answer is killed."""
        if not child.free:
            child.kill()
            await child.ended()
        self._lent.discard(child)
        if child.death is None:
            worn = child.jobs >= self._max_jobs or child.memory > self._max_memory
            if self._closed or worn:
                self._dismiss(child)
            else:
                self._idle.append(child)
        self._keep_spare()

    async def close(self) -> None:
        """End every child and wait for the end, unless the system cannot end it, as when a disk does not answer."""
        self._closed = True
        for child in self._lent:
            child.kill()
        for child in self._idle:
            self._dismiss(child)
        self._idle.clear()
        ending = self._leaving | {asyncio.create_task(child.ended()): child for child in self._lent}
        if not ending:
            return
        _, left = await asyncio.wait(ending, timeout=_CLOSE_TIMEOUT)
        for task in left:
            task.cancel()
            log.error("child process %d does not end after a kill; it is left behind", ending[task].pid)

    def _dismiss(self, child: ChildProcess) -> None:
        leaving = asyncio.create_task(child.leave())
        self._leaving[leaving] = child
        leaving.add_done_callback(self._leaving.pop)

    def _keep_spare(self) -> None:
        if self._idle or self._closed:
            return
        try:
            self._idle.append(self._start())
        except Exception as error:  # noqa: BLE001 - the job that needs one tells why
            log.warning("a child process cannot be started ahead: %s", describe_error(error))

    def _start(self) -> ChildProcess:
        return ChildProcess(dict.fromkeys(address.home for address in self._addresses.values()))
