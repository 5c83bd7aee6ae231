"""Databases of a MariaDB server that flushes every commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.limits import mariadb
from benchmarks.places.base import Places
from benchmarks.places.filling import prepare
from benchmarks.places.served import ServedLimits
from benchmarks.places.tables import KEEP, TIDY
from tools.servers import MariaDbServer

FLUSH = "ANALYZE TABLE duetime_jobs"
SHOWN = ("innodb_flush_log_at_trx_commit", "log_bin", "innodb_buffer_pool_size", "innodb_log_file_size")


@dataclass(frozen=True, slots=True)
class _Database:
    server: MariaDbServer
    name: str

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    def keep(self) -> None:
        self._execute(KEEP, FLUSH)

    def tidy(self) -> None:
        self._execute(*TIDY, FLUSH)

    def _execute(self, *statements: str) -> None:
        for statement in statements:
            self.server.execute(statement, database=self.name)


def mariadb_limits(url: str) -> ServedLimits:
    """Return what MariaDB can do at best."""
    return ServedLimits(mariadb, url)


def shown(server: MariaDbServer) -> str:
    """Return the settings that figures depend on."""
    return ", ".join(f"{name}={server.execute(f'SELECT @@{name}')}" for name in SHOWN)


@contextmanager
def mariadb_places(future: int) -> Iterator[Places]:
    """Start a server and make databases in it."""
    with MariaDbServer() as server:
        for name in ("empty", "filled", "bare"):
            server.create_database(name)
        empty, filled = _Database(server, "empty"), _Database(server, "filled")
        prepare(empty, filled, future)
        yield Places(
            empty=empty,
            filled=filled,
            limits=mariadb_limits(server.url("bare")),
            facts={"MariaDB": server.execute("SELECT version()"), "settings": shown(server)},
            server=server.pid,
        )
