"""The databases of the growth benchmark, each of which can be put to rest, emptied and watched."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from benchmarks.growth.load import Load, Names
from benchmarks.peers.costs import parent, usage
from duetime.stores.open import open_store
from tools.servers import PostgresServer

_OWN = "DELETE FROM duetime_jobs WHERE due_at < {before} AND state <> 'skipped'"
"""Jobs for later are due from a day ahead, and a store in use has a past; all others are a measure's own."""
_TIDY = ("DELETE FROM duetime_workers", "DELETE FROM duetime_schedules")
_HALF_DAY = 43_200
_SHOWN = ("fsync", "synchronous_commit", "shared_buffers", "max_connections", "max_wal_size")
_READING = """
SELECT json_build_array(
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
    pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,
    (SELECT json_agg(json_build_array(s.query, s.calls, s.shared_blks_hit + s.shared_blks_read))
     FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = s.dbid WHERE d.datname = '{database}')
)
"""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'"


class Engine(Protocol):
    """A database that grows."""

    @property
    def name(self) -> str:
        """Its kind."""
        ...

    @property
    def url(self) -> str:
        """Its address."""
        ...

    @property
    def facts(self) -> str:
        """Version and settings."""
        ...

    def beside(self) -> Engine:
        """Return another database of the kind, empty, that shares the server and its disk."""
        ...

    def tidy(self) -> None:
        """Remove everything but the jobs for later, and write all of it out."""
        ...

    def load(self) -> Load | None:
        """Return what the server has done until now; `None` where there is no server."""
        ...

    def connections(self) -> int:
        """Return how many connections there are."""
        ...


class _File:
    name = "sqlite"
    facts = f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=FULL"

    def __init__(self, folder: Path, database: str = "growth") -> None:
        self._folder = folder
        self._path = folder / f"{database}.db"
        self.url = f"sqlite:///{self._path}"

    def beside(self) -> Engine:
        return _File(self._folder, "beside")

    def tidy(self) -> None:
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            for statement in (*_deletions(), "ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"):
                connection.execute(statement)

    def load(self) -> None:
        return None

    def connections(self) -> int:
        return 0


class _Server:
    name = "postgres"

    def __init__(self, server: PostgresServer, database: str = "growth") -> None:
        self._server = server
        self._database = database
        self.url = server.create_database(database)
        server.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        # No public name shows it: the checkpointer's parent is the server.
        checkpointer = server.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
        self._pid = parent(int(checkpointer))
        self._names = Names(_statements(self.url))

    @property
    def facts(self) -> str:
        shown = ", ".join(f"{name}={self._server.execute(f'SHOW {name}')}" for name in _SHOWN)
        return f"PostgreSQL {self._server.execute('SHOW server_version')}, {shown}"

    def beside(self) -> Engine:
        return _Server(self._server, "beside")

    def tidy(self) -> None:
        for statement in (*_deletions(), "VACUUM ANALYZE", "CHECKPOINT"):
            self._server.execute(statement, database=self._database)

    def load(self) -> Load:
        # Asked in another database, so that the question itself is not counted.
        answer = self._server.execute(_READING.format(database=self._database))
        commits, wal, rows = json.loads(answer)
        return Load(
            seconds=time.monotonic(),
            commits=commits,
            wal=wal,
            used=usage([self._pid]),
            calls=self._names.calls(tuple(row) for row in rows or ()),
        )

    def connections(self) -> int:
        return int(self._server.execute(_CONNECTIONS.format(database=self._database)))


@contextmanager
def sqlite() -> Iterator[Engine]:
    """Make a SQLite file on the disk that holds temporary files."""
    with tempfile.TemporaryDirectory(prefix="duetime-growth-") as folder:
        yield _File(Path(folder))


@contextmanager
def postgres() -> Iterator[Engine]:
    """Start a durable PostgreSQL that counts statements and takes the connections of large fleets."""
    settings = {"shared_preload_libraries": "pg_stat_statements"}
    with PostgresServer(fsync=True, max_connections=800, settings=settings) as server:
        yield _Server(server)


ENGINES = {"sqlite": sqlite, "postgres": postgres}


def _deletions() -> tuple[str, ...]:
    before = (int(time.time()) + _HALF_DAY) * 1_000_000
    return (_OWN.format(before=before), *_TIDY)


def _statements(url: str) -> Iterator[Any]:
    # No public name shows them.
    store: Any = open_store(url)
    yield from store._sql  # noqa: SLF001
