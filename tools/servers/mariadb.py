"""A MariaDB of our own."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.servers.binaries import find
from tools.servers.process import HOST, ServerFailed, ServerProcess

_QUICK = {
    "innodb-flush-log-at-trx-commit": "2",
    "innodb-flush-method": "nosync",
    "innodb-doublewrite": "0",
    # A file for each table is most of what it takes to make one.
    "innodb-file-per-table": "0",
}


class MariaDb:
    """A running MariaDB on a loopback port, owned by us or by another process of ours."""

    def __init__(self, port: int) -> None:
        self.port = port

    def url(self, database: str = "mysql") -> str:
        """Return the address of one database."""
        return f"mariadb://root@{HOST}:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        """Create an empty database and return its address."""
        self.execute(f"CREATE DATABASE `{name}`")
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop the database."""
        self.execute(f"DROP DATABASE IF EXISTS `{name}`")

    def execute(self, statement: str, *, database: str = "mysql") -> str:
        """Run one statement in a session of its own and return what it printed, without decoration."""
        command = [
            *self._client("mariadb"),
            "--batch",
            "--skip-column-names",
            "-D",
            database,
            "-e",
            statement,
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise ServerFailed(done.stderr)
        return done.stdout.rstrip("\n")

    def _client(self, program: str) -> list[str | Path]:
        return [find(program), "--no-defaults", "-h", HOST, "-P", str(self.port), "-u", "root"]


class MariaDbServer(MariaDb):
    """A MariaDB that lives in a temporary folder as long as this object is open.

    With `fsync=False` commits survive a kill of the server but not of the machine, and cost no disk time; `settings`
    are the server's own words for more.
    """

    def __init__(
        self, *, fsync: bool = True, max_connections: int = 200, settings: Mapping[str, str] | None = None
    ) -> None:
        self._program = find("mariadbd")
        self._process = ServerProcess("mariadb", account="mysql")
        super().__init__(self._process.port)
        self._data = self._process.folder / "data"
        self._settings = {
            "bind-address": HOST,
            "port": str(self.port),
            "socket": str(self._process.folder / "socket"),
            "pid-file": str(self._process.folder / "pid"),
            "max-connections": str(max_connections),
            **({} if fsync else _QUICK),
            # Small, so that a server of one test starts at once.
            "innodb-log-file-size": "48M",
            **(settings or {}),
        }

    @property
    def pid(self) -> int | None:
        """The process of the server."""
        return self._process.pid

    def start(self) -> None:
        """Start, on the same port and with the same data as before, and return once it answers."""
        if not self._data.exists():
            self._process.run(
                find("mariadb-install-db"),
                "--no-defaults",
                f"--datadir={self._data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            )
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        self._process.start(
            self._program, "--no-defaults", f"--datadir={self._data}", *settings, ready=self._answers
        )

    def stop(self) -> None:
        """Stop in order; nothing happens when it is not running."""
        if self._process.running:
            self._process.signal(signal.SIGTERM)

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
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
        if self._process.running:
            self.kill()
        self._process.remove()

    def _answers(self) -> bool:
        probe = [*self._client("mariadb-admin"), "--silent", "ping"]
        return subprocess.run(probe, check=False, capture_output=True).returncode == 0
