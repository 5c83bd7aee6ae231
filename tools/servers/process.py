"""One server process in a folder of its own, under an account that owns nothing else."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
_PORTS = range(20_000, 32_000)
"""Where no system takes the ports of outgoing connections from: one of those could have it when a server starts again."""
_PR_SET_PDEATHSIG = 1


class ServerFailed(Exception):
    """A server did not start or stop in time; the text ends with its log."""


class ServerProcess:
    """A child process with a folder, a log and a loopback port, which dies with its parent on Linux."""

    def __init__(self, name: str, *, account: str = "postgres") -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"duetime-{name}-"))
        self._account = _unprivileged(account)
        if self._account:
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        self._log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """True while the process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The process to look at, once it has been started."""
        return None if self._process is None else self._process.pid

    def run(self, *command: str | Path) -> None:
        """Run a helper program to its end under the server's account."""
        with self._log.open("ab") as log:
            done = subprocess.run(command, check=False, stdout=log, stderr=log, **self._surroundings())
        if done.returncode:
            raise ServerFailed(f"{command[0]} failed with {done.returncode}:\n{self._log_tail()}")

    def start(self, *command: str | Path, ready: Callable[[], bool], within: float = 30) -> None:
        """Start the server and return once it answers.

        A start that fails is tried again until the time is up: after a kill, the orphans of the process
        before may still hold its memory for a moment.
        """
        deadline = time.monotonic() + within
        while True:
            if not self.running:
                self._launch(command)
            elif ready():
                return
            if time.monotonic() > deadline:
                self.signal(signal.SIGKILL)
                raise ServerFailed(f"{command[0]} does not answer:\n{self._log_tail()}")
            time.sleep(0.02)

    def signal(self, number: signal.Signals, *, within: float = 30) -> None:
        """Send the signal and wait for the end of the process; nothing happens when it is not running."""
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise ServerFailed(f"no end after {number.name}:\n{self._log_tail()}") from None

    def remove(self) -> None:
        """Delete the folder; the process must have ended."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _launch(self, command: tuple[str | Path, ...]) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A session of its own: Ctrl-C in the terminal reaches us, and we stop it in order.
                start_new_session=True,
                # As in Python itself, a file that may not grow is an error of its writer and does not kill it.
                restore_signals=False,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 -- one system call, prepared at import
                **self._surroundings(),
            )

    def _surroundings(self) -> dict[str, Any]:
        # `LC_ALL=C` keeps the log readable; the user's own PG* variables must not steer our server.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        # MariaDB throws out what it finds in the folder for temporary files, though another server may be using it.
        environment |= {"LC_ALL": "C", "TMPDIR": str(self.folder)}
        surroundings: dict[str, Any] = {"cwd": self.folder, "env": environment}
        if self._account:
            surroundings |= {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        return surroundings

    def _log_tail(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]
        return "(no log)"


def printed(*command: str | Path) -> str:
    """Run a client program to its end and return what it printed."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise ServerFailed(done.stderr)
    return done.stdout.rstrip("\n")


def succeeds(*command: str | Path) -> bool:
    """True when a program ends without an error."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def free_port() -> int:
    """Return a loopback port that no one listens on now."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port


def listening(port: int) -> bool:
    """True when someone accepts connections on the loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def _unprivileged(account: str) -> pwd.struct_passwd | None:
    """Database servers refuse to run as root: give root's the account made for them, else no one's."""
    return next(_accounts(account, "nobody"), None) if os.geteuid() == 0 else None


def _accounts(*names: str) -> Iterator[pwd.struct_passwd]:
    for name in names:
        with contextlib.suppress(KeyError):
            yield pwd.getpwnam(name)


_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _end_with_parent() -> None:
    # SIGQUIT ends PostgreSQL, pgbouncer and MariaDB alike at once, whoever is still connected.
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
