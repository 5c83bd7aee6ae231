"""Keeps worker processes at work: starts them, starts others for those that die or when code changes, and passes signals on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final, TypeAlias

from duetime.errors import ConfigError
from duetime.model.text import counted, short_list
from duetime.stores.base.backoff import backoff

log = logging.getLogger("duetime.cli")

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
EXIT_CODE_OF_SIGNAL: Final = 128
START_ANOTHER: Final = 75
"""The exit code of a process that has run as many jobs as it was to run: another one takes its place."""

_LIFELINE: Final = "DUETIME_LIFELINE"
"""In the environment of a process that a supervisor has started: the descriptor that tells when the supervisor has ended."""
_LONG_LIFE: Final = 60.0
"""After how many seconds at work the death of a process is taken for the first one."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
"""Seconds before another process is started in place of one that has died, at first and at last."""
_HURRY_AFTER: Final = 1.0
"""Seconds that running jobs get to end when code has changed."""
_LOOK_EVERY: Final = 0.5
"""Seconds between looks at the source files."""

Snapshot: TypeAlias = dict[str, int]
"""When each source file was last changed."""


def supervise(processes: int, *, reload: bool) -> int | None:
    """Run this very program in other processes until all of them have ended, and return the worst of their exit codes.

    `None` where one process will do, or this is one of them: then it is to do the work itself.
    """
    if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
        raise ConfigError(f"processes must be a whole number from 1, not {processes!r}")
    if _lifeline() is not None or (processes == 1 and not reload):
        return None
    if os.name != "posix":
        raise ConfigError(
            "processes and reload need Linux, macOS or another Unix; start several workers instead"
        )
    if getattr(sys.modules["__main__"], "__file__", None) is None:
        raise ConfigError("processes and reload start this program anew, so it must be a file or a module")
    return asyncio.run(_Supervisor(processes, reload=reload).run())


def is_supervised() -> bool:
    """Whether a supervisor has started this process."""
    return _lifeline() is not None


def heed_supervisor(stop: Callable[[], object]) -> None:
    """Call a function when the supervisor of this process has ended, if it has one."""
    lifeline = _lifeline()
    if lifeline is None:
        return
    loop = asyncio.get_running_loop()

    def ended() -> None:
        loop.remove_reader(lifeline)
        log.warning("the process that supervises this one has ended: stopping")
        stop()

    loop.add_reader(lifeline, ended)


@cache
def _lifeline() -> int | None:
    # Taken out, so that what a job starts is not taken for a process of the supervisor.
    given = os.environ.pop(_LIFELINE, None)
    return None if given is None else int(given)


class _Supervisor:
    """Has the same command line run in each of its processes."""

    def __init__(self, processes: int, *, reload: bool) -> None:
        self._count = processes
        self._reload = reload
        self._running: set[asyncio.subprocess.Process] = set()
        self._stopping = False

    async def run(self) -> int:
        """Return the worst exit code once no process is left and none is to be started."""
        self._outdated = asyncio.Event()
        # Nothing is ever said on it: our end is closed when we end, however that comes.
        self._lifeline, ours = os.pipe()
        watching = asyncio.create_task(self._watch()) if self._reload else None
        log.info("supervising %s", counted(self._count, "worker"))
        with _caught_signals(self._pass_on):
            codes = await asyncio.gather(*(self._keep() for _ in range(self._count)))
        if watching is not None:
            watching.cancel()
        os.close(self._lifeline)
        os.close(ours)
        return max(codes)

    async def _keep(self) -> int:
        """Have one process at work until it has ended well, or all are to end; return its exit code."""
        deaths, loop = 0, asyncio.get_running_loop()
        while True:
            outdated, began = self._outdated, loop.time()
            code = await self._run_one(outdated)
            if self._stopping or (code == 0 and not outdated.is_set()):
                return 0 if code == START_ANOTHER else code
            if code == START_ANOTHER or outdated.is_set():
                continue
            deaths = 1 if loop.time() - began > _LONG_LIFE else deaths + 1
            pause = None if self._reload else backoff(deaths, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
            when = "when code changes" if pause is None else f"in {pause:.1f} s"
            log.warning("a worker has ended with exit code %d; another one starts %s", code, when)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(outdated.wait(), pause)
            if self._stopping:
                return code

    async def _run_one(self, outdated: asyncio.Event) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *sys.orig_argv[1:],
            stdin=asyncio.subprocess.DEVNULL,
            env=os.environ | {_LIFELINE: str(self._lifeline)},
            pass_fds=[self._lifeline],
            # A group of its own: Ctrl-C in a terminal comes to us, and is passed on.
            process_group=0,
        )
        self._running.add(process)
        if outdated.is_set():
            process.terminate()
        code = await process.wait()
        self._running.remove(process)
        if code < 0:
            # It was not even at work when it was told to end.
            told = outdated.is_set() and -code in STOP_SIGNALS
            return 0 if told else EXIT_CODE_OF_SIGNAL - code
        return code

    def _pass_on(self, number: signal.Signals) -> None:
        log.info("%s: passed on to %s", number.name, counted(len(self._running), "worker"))
        self._stopping = True
        self._outdated.set()
        _send(number, self._running)

    async def _watch(self) -> None:
        """Have all processes start anew when a source file changes."""
        known = source_files()
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            found = await asyncio.to_thread(source_files)
            if changed := sorted(dict(known.items() ^ found.items())):
                log.info("%s changed: starting anew", short_list(changed))
                self._start_anew()
            known = found

    def _start_anew(self) -> None:
        self._outdated.set()
        self._outdated = asyncio.Event()
        old = frozenset(self._running)
        _send(signal.SIGTERM, old)
        # The second signal has what still runs cancelled, and run again.
        asyncio.get_running_loop().call_later(
            _HURRY_AFTER, lambda: _send(signal.SIGTERM, old & self._running)
        )


def source_files() -> Snapshot:
    """Return the Python files below the current folder, but for hidden folders and environments."""
    found: Snapshot = {}
    for folder, folders, files in os.walk("."):
        folders[:] = [
            name
            for name in folders
            if not name.startswith((".", "__")) and not Path(folder, name, "pyvenv.cfg").exists()
        ]
        for path in (Path(folder, name) for name in files if name.endswith(".py")):
            with contextlib.suppress(OSError):
                found[str(path)] = path.stat().st_mtime_ns
    return found


def _send(number: signal.Signals, processes: Iterable[asyncio.subprocess.Process]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)


@contextlib.contextmanager
def _caught_signals(act: Callable[[signal.Signals], None]) -> Generator[None]:
    """Have a function called in the event loop for each signal to stop."""
    loop = asyncio.get_running_loop()

    def caught(number: int, frame: FrameType | None) -> None:
        del frame
        loop.call_soon_threadsafe(act, signal.Signals(number))

    before = {number: signal.signal(number, caught) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
