"""A pgbouncer of our own, in front of a PostgreSQL of our own."""

from __future__ import annotations

import signal
from types import TracebackType
from typing import Self

from tools.servers.binaries import find
from tools.servers.postgres import Postgres
from tools.servers.process import HOST, ServerProcess, listening

CONFIGURATION = """\
[databases]
* = host={host} port={server_port} user=postgres

[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 1000
"""


class PgBouncer:
    """A pooler in transaction mode, for every database of the server behind it, while this object is open."""

    def __init__(self, server: Postgres, *, pool_size: int = 20) -> None:
        self._program = find("pgbouncer")
        self._process = ServerProcess("pgbouncer")
        self._configuration = self._process.folder / "pgbouncer.ini"
        self._configuration.write_text(
            CONFIGURATION.format(
                host=HOST, port=self._process.port, server_port=server.port, pool_size=pool_size
            ),
            encoding="utf-8",
        )

    def url(self, database: str = "postgres") -> str:
        """Return the address of one database, by way of the pooler."""
        return f"postgresql://postgres@{HOST}:{self._process.port}/{database}"

    def start(self) -> None:
        """Start on the same port as before and return once it accepts connections."""
        self._process.start(self._program, self._configuration, ready=lambda: listening(self._process.port))

    def stop(self) -> None:
        """Stop at once, dropping its clients; nothing happens when it is not running."""
        if self._process.running:
            self._process.signal(signal.SIGTERM)

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill it without a word."""
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
        """Stop and remove its folder."""
        self.stop()
        self._process.remove()
