"""The databases of the marathon, and how large they are."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.marathon.judge import Bounds
from tools.servers import PostgresServer

_MB = 1024 * 1024
_DATABASE = "marathon"
_SIZES = """
SELECT pg_total_relation_size('duetime_jobs'),
       (SELECT sum(size) FROM pg_ls_waldir()),
       (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'duetime_jobs')
"""
_WRITTEN = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"


class Extent(NamedTuple):
    """How large things are, in megabytes."""

    table: float
    log: float
    dead: int = 0


class Ground(Protocol):
    """A database to drain."""

    @property
    def url(self) -> str:
        """Its address."""
        ...

    @property
    def facts(self) -> str:
        """Version and settings."""
        ...

    @property
    def bounds(self) -> Bounds:
        """What holds for it."""
        ...

    def extent(self) -> Extent:
        """Return how large it is now."""
        ...

    def written(self) -> float | None:
        """Return how many megabytes of log were ever written, where that is known."""
        ...

    def vacuum(self) -> None:
        """Make the room of what is gone usable, as the database does by itself sooner or later."""
        ...

    def fresh(self) -> float:
        """Return how many megabytes the records take when they are written anew; the database may be rewritten by it."""
        ...


class _File:
    facts = f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=FULL"
    # Rows are changed in place. The log is begun anew after 4 MB, or a little later when somebody reads.
    bounds = Bounds(versions=1.25, log=16.0, splits=1.25)

    def __init__(self, folder: Path) -> None:
        self._path = folder / "marathon.db"
        self.url = f"sqlite:///{self._path}"

    def extent(self) -> Extent:
        log = self._path.with_name(f"{self._path.name}-wal")
        return Extent(_size(self._path), _size(log))

    def written(self) -> None:
        return None

    def vacuum(self) -> None:
        self._execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def fresh(self) -> float:
        copy = self._path.with_name("copy.db")
        copy.unlink(missing_ok=True)
        self._execute(f"VACUUM INTO '{copy}'")
        return _size(copy)

    def _execute(self, statement: str) -> None:
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            connection.execute(statement)


class _Server:
    # Stored, claimed, settled: three versions of each row, if nothing is vacuumed on the way. The log is kept for two
    # checkpoints, which come at the latest when a gigabyte was written.
    bounds = Bounds(versions=3.0, log=1024.0 * 1.2)

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.url = server.create_database(_DATABASE)

    @property
    def facts(self) -> str:
        return f"PostgreSQL {self._execute('SHOW server_version')}, fsync on, stock settings"

    def extent(self) -> Extent:
        table, log, dead = self._execute(_SIZES).split("|")
        return Extent(int(table) / _MB, int(log) / _MB, int(dead or 0))

    def written(self) -> float:
        return int(self._execute(_WRITTEN)) / _MB

    def vacuum(self) -> None:
        self._execute("VACUUM ANALYZE duetime_jobs")

    def fresh(self) -> float:
        self._execute("VACUUM FULL duetime_jobs")
        return self.extent().table

    def _execute(self, statement: str) -> str:
        return self._server.execute(statement, database=_DATABASE)


@contextmanager
def sqlite() -> Iterator[Ground]:
    """Make a SQLite file on the disk that holds temporary files."""
    with tempfile.TemporaryDirectory(prefix="duetime-marathon-") as folder:
        yield _File(Path(folder))


@contextmanager
def postgres() -> Iterator[Ground]:
    """Start a durable PostgreSQL with its stock settings."""
    with PostgresServer(fsync=True) as server:
        yield _Server(server)


GROUNDS = {"sqlite": sqlite, "postgres": postgres}


def _size(path: Path) -> float:
    return path.stat().st_size / _MB if path.exists() else 0.0
