"""Databases of a PostgreSQL server with its stock settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.limits import postgres
from benchmarks.places.base import Places
from benchmarks.places.filling import prepare
from benchmarks.places.served import ServedLimits
from benchmarks.places.tables import KEEP, TIDY
from tools.servers import PostgresServer

_FLUSH = ("VACUUM ANALYZE duetime_jobs", "CHECKPOINT")
SHOWN = ("fsync", "synchronous_commit", "shared_buffers", "max_connections")


@dataclass(frozen=True, slots=True)
class _Database:
    server: PostgresServer
    name: str

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    def keep(self) -> None:
        self._execute(KEEP, *_FLUSH)

    def tidy(self) -> None:
        self._execute(*TIDY, *_FLUSH)

    def _execute(self, *statements: str) -> None:
        for statement in statements:
            self.server.execute(statement, database=self.name)


def postgres_limits(url: str) -> ServedLimits:
    """Return what PostgreSQL can do at best."""
    return ServedLimits(postgres, url)


@contextmanager
def postgres_places(future: int) -> Iterator[Places]:
    """Start a server and make databases in it."""
    with PostgresServer(fsync=True) as server:
        for name in ("empty", "filled", "bare"):
            server.create_database(name)
        empty, filled = _Database(server, "empty"), _Database(server, "filled")
        prepare(empty, filled, future)
        shown = ", ".join(f"{name}={server.execute(f'SHOW {name}')}" for name in SHOWN)
        yield Places(
            empty=empty,
            filled=filled,
            limits=postgres_limits(server.url("bare")),
            facts={"PostgreSQL": server.execute("SHOW server_version"), "settings": shown},
            server=server.pid,
        )
