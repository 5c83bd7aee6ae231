"""Empty databases, one per cell, on the disk or on one durable server."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.peers.costs import parent
from benchmarks.peers.systems import Engine
from benchmarks.places import Limits, PostgresLimits, SqliteLimits
from tools.servers import PostgresServer

_SHOWN = ("fsync", "synchronous_commit", "shared_buffers", "max_connections")


class Databases(Protocol):
    """Where the cells of one engine are measured."""

    def empty(self, folder: Path) -> AbstractContextManager[str]:
        """Return the address of a new database, which is gone at the end."""
        ...

    def rest(self, url: str) -> None:
        """Write everything out and gather statistics, so that no cell pays for what was stored before."""
        ...

    @property
    def server(self) -> int | None:
        """The server's process."""
        ...

    @property
    def facts(self) -> str:
        """Version and settings."""
        ...

    @property
    def limits(self) -> Limits:
        """What the engine can do at best."""
        ...


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


class _Server:
    def __init__(self, server: PostgresServer) -> None:
        self._postgres = server
        self._numbers = itertools.count()
        # No public name shows it: the checkpointer's parent is the server.
        checkpointer = server.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
        self.server = parent(int(checkpointer))
        self.limits = PostgresLimits(server.create_database("bare"))

    @property
    def facts(self) -> str:
        shown = ", ".join(f"{name}={self._postgres.execute(f'SHOW {name}')}" for name in _SHOWN)
        return f"PostgreSQL {self._postgres.execute('SHOW server_version')}, {shown}"

    @contextmanager
    def empty(self, folder: Path) -> Iterator[str]:
        del folder
        name = f"cell{next(self._numbers)}"
        try:
            yield self._postgres.create_database(name)
        finally:
            self._postgres.drop_database(name)

    def rest(self, url: str) -> None:
        for statement in ("VACUUM ANALYZE", "CHECKPOINT"):
            self._postgres.execute(statement, database=url.rpartition("/")[2])


@contextmanager
def opened(engine: Engine) -> Iterator[Databases]:
    """Open an engine: a folder for SQLite, a server with its stock settings for PostgreSQL."""
    if engine == "sqlite":
        with tempfile.TemporaryDirectory(prefix="duetime-bench-") as folder:
            yield _Files(folder)
    else:
        with PostgresServer(fsync=True) as server:
            yield _Server(server)
