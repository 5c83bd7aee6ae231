"""A system from the outside: its environment, its processes, what they say, and what its handlers noted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.peers.catalogue import System
from benchmarks.peers.cells import Start
from benchmarks.peers.systems.base import Settings, Unsupported, entries

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".bench" / "envs"
_STAMP = "requirements.txt"
_INHERITED = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ")


def python(system: System, folder: Path = ENVIRONMENTS) -> Path:
    """Return the interpreter that a system runs in, and make its environment if it is missing or outdated."""
    home = folder / system.environment
    wanted = "".join(f"{pin}\n" for pin in system.requirements)
    stamp = home / _STAMP
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the environment for {system.adapter}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
        subprocess.run([*pip, *system.requirements], check=True)
        stamp.write_text(wanted)
    return home / "bin" / "python"


def surroundings(system: System, *, ledger: Path | None = None) -> dict[str, str]:
    """Return the environment variables of a system's process: its own packages, and of ours the adapters only, or all."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    paths = [ROOT / "src", ROOT] if system.ours else [ROOT]
    found = {**inherited, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONUNBUFFERED": "1"}
    return found if ledger is None else {**found, "PEERS_LEDGER": str(ledger)}


def versions(system: System) -> dict[str, str]:
    """Return what is installed for a system, by name."""
    code = "import importlib.metadata as m; print(*sorted({d.metadata['Name'] + '==' + d.version for d in m.distributions()}))"
    done = subprocess.run([str(python(system)), "-c", code], check=True, capture_output=True, text=True)
    return dict(pin.split("==", 1) for pin in done.stdout.split())


_INSIDE = "benchmarks.peers.systems.inside"
_PATIENCE = 400.0
"""Seconds an answer may take."""
_GRACE = 8.0
"""Seconds a worker gets to end."""
_ENTRY = 24
"""Bytes that a handler notes."""
_TAIL = 1_500


class PeerFailed(Exception):
    """A system's process ended without an answer; the text ends with what it printed."""


class Process:
    """One process inside a system's environment."""

    def __init__(self, system: System, command: str, arguments: dict[str, Any], *, folder: Path) -> None:
        self._what = f"{system.name} {command}"
        self._log = folder / "log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [python(system), "-m", _INSIDE, system.adapter, command, json.dumps(arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env=surroundings(system, ledger=folder / "ledger"),
            )

    @property
    def pid(self) -> int:
        """The process to look at."""
        return self._process.pid

    def said(self, *, within: float = _PATIENCE) -> dict[str, Any]:
        """Wait for the next answer; a process that has none in time is ended."""
        impatience = threading.Timer(within, self._process.kill)
        impatience.start()
        try:
            line = _pipe(self._process.stdout).readline()
        finally:
            impatience.cancel()
        if not line:
            raise PeerFailed(f"{self._what} said nothing:\n{self._tail()}")
        answer: dict[str, Any] = json.loads(line)
        if lack := answer.get("unsupported"):
            raise Unsupported(lack)
        return answer

    def go(self) -> None:
        """Let a worker begin."""
        pipe = _pipe(self._process.stdin)
        pipe.write("go\n")
        pipe.flush()

    def stop(self) -> None:
        """Ask it to end; end it if it does not."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            _pipe(pipe).close()

    def _tail(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-_TAIL:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The workers of a system that run now."""

    processes: tuple[Process, ...]
    began: float
    """When the first of them was let go."""
    used: float
    """The processor seconds that all of them had used by then."""

    @property
    def pids(self) -> list[int]:
        """The processes to look at."""
        return [process.pid for process in self.processes]


class Peer:
    """One system on one empty database."""

    def __init__(self, system: System, *, url: str, folder: Path) -> None:
        self.system = system
        self.url = url
        self._folder = folder
        self._ledger = folder / "ledger"
        self._ledger.touch()

    def prepare(self) -> None:
        """Make its tables."""
        self._ask("prepare", {})

    def call(self, command: str, *, within: float = _PATIENCE, **arguments: Any) -> dict[str, Any]:
        """Be its client for one command, in a process of its own."""
        return self._ask("call", {"command": command, "arguments": arguments}, within=within)

    @contextmanager
    def working(self, settings: Settings, *, processes: int = 1) -> Iterator[Workers]:
        """Run workers."""
        with ExitStack() as stack:
            yield self._started(stack, settings, processes=processes)

    @contextmanager
    def serving(
        self, settings: Settings, command: str, *, settle: float, **arguments: Any
    ) -> Iterator[tuple[Workers, dict[str, Any]]]:
        """Run a worker and, once it is idle, a client: beside it or, where there is no other way, inside."""
        with ExitStack() as stack:
            if self.system.in_process:
                workers = self._started(stack, settings, then=(command, arguments))
                yield workers, workers.processes[0].said()
            else:
                workers = self._started(stack, settings)
                time.sleep(settle)
                yield workers, self.call(command, **arguments)

    def forget(self) -> None:
        """Empty the ledger."""
        self._ledger.write_bytes(b"")

    def ran(self) -> int:
        """Return how many starts were noted."""
        return self._ledger.stat().st_size // _ENTRY

    def starts(self) -> list[Start]:
        """Return the noted starts."""
        return [Start(*entry) for entry in entries(self._ledger.read_bytes())]

    def wait(self, count: int, *, until: float) -> None:
        """Wait until so many starts were noted, or until a moment of the wall clock."""
        while self.ran() < count and time.time() < until:
            time.sleep(0.02)

    def _ask(self, command: str, arguments: dict[str, Any], *, within: float = _PATIENCE) -> dict[str, Any]:
        process = Process(self.system, command, {"url": self.url, **arguments}, folder=self._folder)
        try:
            return process.said(within=within)
        finally:
            process.stop()

    def _started(
        self,
        stack: ExitStack,
        settings: Settings,
        *,
        processes: int = 1,
        then: tuple[str, dict[str, Any]] | None = None,
    ) -> Workers:
        arguments = {"url": self.url, "settings": asdict(settings), "then": then}
        started: list[Process] = []
        for _ in range(processes):
            started.append(Process(self.system, "work", arguments, folder=self._folder))
            stack.callback(started[-1].stop)
        for process in started:
            process.said()
        for process in started:
            process.go()
        begun = [process.said() for process in started]
        return Workers(
            processes=tuple(started),
            began=min(answer["began"] for answer in begun),
            used=sum(answer["used"] for answer in begun),
        )


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
