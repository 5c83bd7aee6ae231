"""A MariaDB of our own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.servers.binaries import find
from tools.servers.own import OwnServer
from tools.servers.process import HOST, printed, succeeds

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
        bare = ("--batch", "--skip-column-names")
        return printed(*self._client("mariadb"), *bare, "-D", database, "-e", statement)

    def _client(self, program: str) -> list[str | Path]:
        return [find(program), "--no-defaults", "-h", HOST, "-P", str(self.port), "-u", "root"]


class MariaDbServer(OwnServer, MariaDb):
    """A MariaDB that lives in a temporary folder as long as this object is open.

    With `fsync=False` commits survive a kill of the server but not of the machine, and cost no disk time; `settings`
    are the server's own words for more.
    """

    def __init__(
        self, *, fsync: bool = True, max_connections: int = 200, settings: Mapping[str, str] | None = None
    ) -> None:
        OwnServer.__init__(self, "mariadbd", account="mysql")
        MariaDb.__init__(self, self.port)
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

    def start(self) -> None:
        """Start; the first time, make the data before."""
        if not self._data.exists():
            self._process.run(
                find("mariadb-install-db"),
                "--no-defaults",
                f"--datadir={self._data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            )
        super().start()

    def _arguments(self) -> Iterable[str | Path]:
        settings = (f"--{name}={value}" for name, value in self._settings.items())
        return ("--no-defaults", f"--datadir={self._data}", *settings)

    def _answers(self) -> bool:
        return succeeds(*self._client("mariadb-admin"), "--silent", "ping")
