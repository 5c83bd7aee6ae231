"""A pgbouncer of our own, in front of a PostgreSQL of our own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tools.servers.own import OwnServer
from tools.servers.postgres import Postgres
from tools.servers.process import HOST, listening

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


class PgBouncer(OwnServer):
    """A pooler in transaction mode, for every database of the server behind it, while this object is open."""

    def __init__(self, server: Postgres, *, pool_size: int = 20) -> None:
        super().__init__("pgbouncer")
        self._configuration = self._process.folder / "pgbouncer.ini"
        self._configuration.write_text(
            CONFIGURATION.format(host=HOST, port=self.port, server_port=server.port, pool_size=pool_size),
            encoding="utf-8",
        )

    def url(self, database: str = "postgres") -> str:
        """Return the address of one database, by way of the pooler."""
        return f"postgresql://postgres@{HOST}:{self.port}/{database}"

    def _arguments(self) -> Iterable[str | Path]:
        return (self._configuration,)

    def _answers(self) -> bool:
        return listening(self.port)
