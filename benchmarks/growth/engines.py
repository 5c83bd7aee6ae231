"""The databases of the growth benchmark: each can be put to rest, emptied and watched."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.processes import parent, usage
from duetime.stores.open import open_store
from duetime.stores.sql.driver import Statement
from tools.servers import PostgresServer

_CONSTANT = re.compile(r"'(?:[^']|'')*'|\$\d+|-?\b\d+\b|\b(?:true|false|epoch)\b|(?<!IS )(?<!NOT )NULL")
_SPACE = re.compile(r"\s+")
_NAMED = {
    "BEGIN": "begin",
    "COMMIT": "commit",
    "SELECT set_config": "notify",
    "COPY": "copy",
    "LISTEN": "listen",
    "SELECT $1": "check",
}
"""Statements that no `.sql` file has, by how they begin."""
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Calls:
    """All calls of one statement: how many, and how many pages they touched."""

    count: int = 0
    pages: int = 0

    def __add__(self, other: Calls) -> Calls:
        return Calls(self.count + other.count, self.pages + other.pages)

    def __sub__(self, other: Calls) -> Calls:
        return Calls(self.count - other.count, self.pages - other.pages)


_NONE = Calls()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a server has done, up to a moment or between two."""

    seconds: float
    commits: int
    """Transactions that wrote something."""
    wal: int
    """Bytes of the write-ahead log, of everything on the server."""
    used: Mapping[int, float] = field(default_factory=dict)
    """Processor seconds, by process; of those that ended in between, the rest is not known."""
    calls: Mapping[str, Calls] = field(default_factory=dict)
    """By the name of the statement."""

    def since(self, before: Load) -> Load:
        """Return what was done since another reading."""
        calls = {name: each - before.calls.get(name, _NONE) for name, each in self.calls.items()}
        return Load(
            seconds=self.seconds - before.seconds,
            commits=self.commits - before.commits,
            wal=self.wal - before.wal,
            used={pid: max(0.0, used - before.used.get(pid, 0.0)) for pid, used in self.used.items()},
            calls={name: each for name, each in calls.items() if each.count},
        )

    @property
    def processor(self) -> float:
        """Processor seconds, of all processes of the server."""
        return sum(self.used.values())

    @property
    def statements(self) -> int:
        """How many statements it was asked."""
        return sum(each.count for each in self.calls.values())

    def pages(self, *names: str) -> float:
        """Return how many pages one call touched, of the statements of these names together."""
        found = sum((self.calls.get(name, _NONE) for name in names), _NONE)
        return found.pages / found.count if found.count else 0.0


class Names:
    """Tells which of the store's statements a text in the server's statistics is, where constants are left out."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._names = {skeleton(each.sql): each.name for each in statements}

    def of(self, text: str) -> str:
        """Return the name of a statement."""
        found = self._names.get(skeleton(text))
        if found is None:
            found = next((name for start, name in _NAMED.items() if text.startswith(start)), OTHER)
        return found

    def calls(self, rows: Iterable[tuple[str, int, int]]) -> dict[str, Calls]:
        """Add up the server's statistics by name: of text, calls and pages."""
        found: dict[str, Calls] = {}
        for text, count, pages in rows:
            name = self.of(text)
            found[name] = found.get(name, _NONE) + Calls(count, pages)
        return found


def skeleton(text: str) -> str:
    """Return a statement without what the server's statistics leave out, and without layout."""
    return _SPACE.sub(" ", _CONSTANT.sub("?", text)).strip()


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

    @property
    def url(self) -> str:
        """Its address."""

    @property
    def facts(self) -> str:
        """Version and settings."""

    def beside(self) -> Engine:
        """Return another database of the kind, empty, that shares the server and its disk."""

    def tidy(self) -> None:
        """Remove everything but the jobs for later, and write all of it out."""

    def load(self) -> Load | None:
        """Return what the server has done until now; `None` where there is no server."""

    def connections(self) -> int:
        """Return how many connections there are."""


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
