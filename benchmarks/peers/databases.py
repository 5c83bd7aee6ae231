"""Empty databases, one per cell, on the disk or on one durable server."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.peers.catalogue import Engine
from benchmarks.places import (
    FLUSH_MARIADB,
    Limits,
    SqliteLimits,
    connected,
    mariadb_facts,
    mariadb_limits,
    postgres_facts,
    postgres_limits,
    redis_limits,
    rewritten,
    shown,
)
from tools.servers import MariaDbServer, PostgresServer, RedisServer


class Databases(Protocol):
    """Where the cells of one engine are measured."""

    def empty(self, folder: Path) -> AbstractContextManager[str]:
        """Return the address of a new database, which is gone at the end."""

    def rest(self, url: str) -> None:
        """Write everything out and gather statistics, so that no cell pays for what was stored before."""

    @property
    def server(self) -> int | None:
        """The server's process."""

    @property
    def facts(self) -> str:
        """Version and settings."""

    @property
    def limits(self) -> Limits:
        """What the engine can do at best."""


@dataclass(frozen=True, slots=True)
class _Files:
    bare: str
    server: None = None

    @property
    def facts(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    @property
    def limits(self) -> Limits:
        return SqliteLimits(self.bare)

    @contextmanager
    def empty(self, folder: Path) -> Iterator[str]:
        yield f"sqlite:///{folder / 'peers.db'}"

    def rest(self, url: str) -> None:
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute("ANALYZE")
            connection.commit()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class _Tables:
    """A server of SQL databases."""

    def __init__(
        self,
        server: MariaDbServer | PostgresServer,
        *,
        limits: Callable[[str], Limits],
        facts: dict[str, str],
        rest: Sequence[str],
    ) -> None:
        self._server = server
        self._numbers = itertools.count()
        self._rest = rest
        self.server = server.pid
        self.limits = limits(server.create_database("bare"))
        (title, version), (_, settings) = facts.items()
        self.facts = f"{title} {version}, {settings}"

    @contextmanager
    def empty(self, folder: Path) -> Iterator[str]:
        del folder
        name = f"cell{next(self._numbers)}"
        try:
            yield self._server.create_database(name)
        finally:
            self._server.drop_database(name)

    def rest(self, url: str) -> None:
        for statement in self._rest:
            self._server.execute(statement, database=url.rpartition("/")[2])


class _Redis:
    def __init__(self, server: RedisServer) -> None:
        self._redis = server
        self.server = server.pid
        self.limits = redis_limits(server.url(1))

    @property
    def facts(self) -> str:
        with connected(self._redis.url()) as client:
            return f"Redis {client.info('server')['redis_version']}, {shown(client)}"

    @contextmanager
    def empty(self, folder: Path) -> Iterator[str]:
        del folder
        with connected(self._redis.url()) as client:
            client.flushall()
            rewritten(client)
        yield self._redis.url()

    def rest(self, url: str) -> None:
        del url
        with connected(self._redis.url()) as client:
            rewritten(client)


@contextmanager
def _files() -> Iterator[Databases]:
    with tempfile.TemporaryDirectory(prefix="duetime-bench-") as folder:
        yield _Files(folder)


@contextmanager
def _postgres() -> Iterator[Databases]:
    with PostgresServer(fsync=True) as server:
        yield _Tables(
            server,
            limits=postgres_limits,
            facts=postgres_facts(server),
            rest=("VACUUM ANALYZE", "CHECKPOINT"),
        )


@contextmanager
def _mariadb() -> Iterator[Databases]:
    with MariaDbServer() as server:
        yield _Tables(server, limits=mariadb_limits, facts=mariadb_facts(server), rest=FLUSH_MARIADB)


@contextmanager
def _redis() -> Iterator[Databases]:
    with RedisServer() as server:
        yield _Redis(server)


_OPENED: dict[Engine, Callable[[], AbstractContextManager[Databases]]] = {
    "sqlite": _files,
    "postgres": _postgres,
    "mariadb": _mariadb,
    "redis": _redis,
}


def opened(engine: Engine) -> AbstractContextManager[Databases]:
    """Open an engine: a folder for SQLite, for the others a server with its stock settings, Redis with its log."""
    return _OPENED[engine]()
