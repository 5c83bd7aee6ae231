"""A PostgreSQL of our own."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Literal

from tools.servers.binaries import find
from tools.servers.own import OwnServer
from tools.servers.process import HOST, printed, succeeds

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
        return printed(
            find("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), "-c", statement
        )


class PostgresServer(OwnServer, Postgres):
    """A PostgreSQL that lives in a temporary folder as long as this object is open.

    With `fsync=False` commits survive a kill of the server but not of the machine, and cost no disk time; `settings`
    are the server's own words for more. With a `primary` it begins as a hot standby of that server. It also listens on
    the address of a `network`, and trusts all hosts there.
    """

    # A kill leaves its children behind, who hold the port and the data.
    _AT_ONCE = signal.SIGQUIT

    def __init__(
        self,
        *,
        fsync: bool = True,
        max_connections: int = 200,
        settings: Mapping[str, str] | None = None,
        primary: Postgres | None = None,
        network: IPv4Interface | None = None,
    ) -> None:
        OwnServer.__init__(self, "postgres")
        Postgres.__init__(self, self.port)
        self._primary = primary
        self._network = network
        self._data = self._process.folder / "data"
        self._settings = {
            "listen_addresses": HOST if network is None else f"{HOST},{network.ip}",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": str(max_connections),
            "max_prepared_transactions": "10",
            "fsync": "on" if fsync else "off",
            **(settings or {}),
        }

    def start(self) -> None:
        """Start; the first time, make the data before."""
        if not self._data.exists():
            self._process.run(*self._making())
            if self._network is not None:
                with (self._data / "pg_hba.conf").open("a", encoding="ascii") as rules:
                    rules.write(f"host all all {self._network.network} trust\n")
        super().start()

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop like `pg_ctl stop -m <mode>`; nothing happens when it is not running."""
        self._process.signal(_STOP_SIGNALS[mode])

    def promote(self) -> None:
        """End the recovery of a standby and return once it accepts writes."""
        self.execute("SELECT pg_promote(wait => true)")

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start; `immediate` makes it recover as after a crash."""
        self.stop(mode)
        self.start()

    def _making(self) -> Iterable[str | Path]:
        if self._primary is None:
            return (
                find("initdb"),
                "-D",
                self._data,
                "-U",
                "postgres",
                "-E",
                "UTF8",
                "-A",
                "trust",
                "--no-sync",
            )
        return (
            *(find("pg_basebackup"), "-D", self._data, "-d", self._primary.url(), "--no-sync"),
            *("--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream"),
        )

    def _arguments(self) -> Iterable[str | Path]:
        return ("-D", self._data, *(f"--{name}={value}" for name, value in self._settings.items()))

    def _answers(self) -> bool:
        return succeeds(find("pg_isready"), "-q", "-h", HOST, "-p", str(self.port))
