"""A PostgreSQL of our own."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tools.servers.binaries import find
from tools.servers.process import HOST, ServerFailed, ServerProcess

StopMode = Literal["smart", "fast", "immediate"]

_STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class Postgres:
    """A running PostgreSQL on a loopback port, owned by us or by another process of ours."""

    def __init__(self, port: int) -> None:
        self.port = port

    def url(self, database: str = "postgres") -> str:
        """Return the address of one database."""
        return f"postgresql://postgres@{HOST}:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        """Create an empty database and return its address."""
        self.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop the database, and the connections that still use it."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def execute(self, statement: str, *, database: str = "postgres") -> str:
        """Run one statement in a session of its own and return what it printed, without decoration."""
        command: list[str | Path] = [
            find("psql"),
            "-XAtq",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            self.url(database),
            "-c",
            statement,
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise ServerFailed(done.stderr)
        return done.stdout.rstrip("\n")


class PostgresServer(Postgres):
    """A PostgreSQL that lives in a temporary folder as long as this object is open.

    With `fsync=False` commits survive a kill of the server but not of the machine, and cost no disk time; `settings`
    are the server's own words for more.
    """

    def __init__(
        self, *, fsync: bool = True, max_connections: int = 200, settings: Mapping[str, str] | None = None
    ) -> None:
        self._program = find("postgres")
        self._process = ServerProcess("postgres")
        super().__init__(self._process.port)
        self._data = self._process.folder / "data"
        self._settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": str(max_connections),
            "max_prepared_transactions": "10",
            "fsync": "on" if fsync else "off",
            **(settings or {}),
        }

    @property
    def pid(self) -> int | None:
        """The process that starts all others of the server."""
        return self._process.pid

    def start(self) -> None:
        """Start, on the same port and with the same data as before, and return once it answers."""
        if not self._data.exists():
            self._process.run(
                find("initdb"), "-D", self._data, "-U", "postgres", "-E", "UTF8", "-A", "trust", "--no-sync"
            )
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        self._process.start(self._program, "-D", self._data, *settings, ready=self._answers)

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop like `pg_ctl stop -m <mode>`; nothing happens when it is not running."""
        if self._process.running:
            self._process.signal(_STOP_SIGNALS[mode])

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start; `immediate` makes it recover as after a crash."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """Kill the server without a word, as the kernel does when memory runs out."""
        self._process.signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop at once and remove the data."""
        self.stop("immediate")
        self._process.remove()

    def _answers(self) -> bool:
        probe: list[str | Path] = [find("pg_isready"), "-q", "-h", HOST, "-p", str(self.port)]
        return subprocess.run(probe, check=False).returncode == 0
