"""The databases of a run: one empty, one full of jobs for later, one for the bare loops."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks import children
from benchmarks.ledger import now
from benchmarks.limits import postgres, sqlite
from benchmarks.sizes import Sizes
from benchmarks.subject import TICK, Subject
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.model.states import State
from tools.servers import PostgresServer

_FIRST_FUTURE = 86_400 * 1_000_000
"""Jobs for later are due from a day ahead, one per second."""
_TIDY = (
    # Job ids rise with time: those made after the filling are the measures' own.
    "DELETE FROM duetime_jobs WHERE id > (SELECT coalesce(max(id), '') FROM filling)",
    "DELETE FROM duetime_workers",
    "DELETE FROM duetime_schedules",
)
_PAST = 1_000
_KEEP = "CREATE TABLE filling AS SELECT max(id) AS id FROM duetime_jobs"
_SQLITE_FLUSH = "PRAGMA wal_checkpoint(TRUNCATE)"
_POSTGRES_FLUSH = ("VACUUM ANALYZE duetime_jobs", "CHECKPOINT")


class Place(Protocol):
    """A database that Duetime is measured on."""

    @property
    def url(self) -> str:
        """Its address."""
        ...

    def keep(self) -> None:
        """Take what is stored now for the state that every measure begins with."""
        ...

    def tidy(self) -> None:
        """Remove what was stored since."""
        ...


class Limits(Protocol):
    """What the database can do at best."""

    def inserts(self, sizes: Sizes) -> dict[str, float]:
        """Inserts per second: `single`, `bulk` and, where there can be several at once, `at_once`."""
        ...

    def drain(self, jobs: int, batch: int) -> float:
        """Jobs per second of the bare loop."""
        ...

    def round_trips(self, pings: int) -> float:
        """Milliseconds for an insert, a hint and a claim."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where one run measures."""

    empty: Place
    filled: Place
    limits: Limits
    facts: dict[str, str]
    server: int | None = None
    """The process of the server, where there is one."""


@dataclass(frozen=True, slots=True)
class _SqliteFile:
    path: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def keep(self) -> None:
        self._execute(_KEEP, "ANALYZE", _SQLITE_FLUSH)

    def tidy(self) -> None:
        self._execute(*_TIDY, _SQLITE_FLUSH)

    def _execute(self, *statements: str) -> None:
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)


@dataclass(frozen=True, slots=True)
class SqliteLimits:
    """What SQLite can do at best, in a folder of its own."""

    folder: str

    def inserts(self, sizes: Sizes) -> dict[str, float]:
        """Insert one by one, by callers at once, and in bulk."""
        found: dict[str, float] = children.run(
            sqlite.inserts, folder=self.folder, singles=sizes.singles, bulk=sizes.bulk
        )
        # SQLite has one writer: callers at once can only be compared with one caller.
        return {**found, "at_once": found["single"]}

    def drain(self, jobs: int, batch: int) -> float:
        """Run the bare loop."""
        return float(children.run(sqlite.drain, folder=self.folder, jobs=jobs, batch=batch))

    def round_trips(self, pings: int) -> float:
        """Make the round trips that no design can do without."""
        return float(children.run(sqlite.round_trips, folder=self.folder, pings=pings))


@dataclass(frozen=True, slots=True)
class _PostgresDatabase:
    server: PostgresServer
    name: str

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    def keep(self) -> None:
        self._execute(_KEEP, *_POSTGRES_FLUSH)

    def tidy(self) -> None:
        self._execute(*_TIDY, *_POSTGRES_FLUSH)

    def _execute(self, *statements: str) -> None:
        for statement in statements:
            self.server.execute(statement, database=self.name)


@dataclass(frozen=True, slots=True)
class PostgresLimits:
    """What PostgreSQL can do at best, in a database of its own."""

    url: str

    def inserts(self, sizes: Sizes) -> dict[str, float]:
        """Insert one by one, by callers at once, and in bulk."""
        found: dict[str, float] = children.run(
            postgres.inserts, url=self.url, singles=sizes.singles, at_once=sizes.at_once, bulk=sizes.bulk
        )
        return found

    def drain(self, jobs: int, batch: int) -> float:
        """Run the bare loop."""
        return float(children.run(postgres.drain, url=self.url, jobs=jobs, batch=batch))

    def round_trips(self, pings: int) -> float:
        """Make the round trips that no design can do without."""
        return float(children.run(postgres.round_trips, url=self.url, pings=pings))


@contextmanager
def sqlite_places(future: int) -> Iterator[Places]:
    """Make SQLite files on the disk that holds temporary files."""
    with tempfile.TemporaryDirectory(prefix="duetime-bench-") as folder:
        empty, filled = (_SqliteFile(Path(folder) / f"{name}.db") for name in ("empty", "filled"))
        _prepare(empty, filled, future)
        facts = {"SQLite": sqlite3.sqlite_version, "settings": "WAL, synchronous=FULL"}
        yield Places(empty=empty, filled=filled, limits=SqliteLimits(folder), facts=facts)


@contextmanager
def postgres_places(future: int) -> Iterator[Places]:
    """Start a PostgreSQL with its stock settings and make databases in it."""
    with PostgresServer(fsync=True) as server:
        for name in ("empty", "filled", "bare"):
            server.create_database(name)
        empty, filled = _PostgresDatabase(server, "empty"), _PostgresDatabase(server, "filled")
        _prepare(empty, filled, future)
        version = server.execute("SHOW server_version")
        settings = ("fsync", "synchronous_commit", "shared_buffers", "max_connections")
        shown = ", ".join(f"{name}={server.execute(f'SHOW {name}')}" for name in settings)
        facts = {"PostgreSQL": version, "settings": shown}
        yield Places(
            empty=empty,
            filled=filled,
            limits=PostgresLimits(server.url("bare")),
            facts=facts,
            server=server.pid,
        )


PLACES: dict[str, Any] = {"sqlite": sqlite_places, "postgres": postgres_places}


def _prepare(empty: Place, filled: Place, future: int) -> None:
    for place, count in ((empty, 0), (filled, future)):
        children.run(fill, url=place.url, future=count)
        place.keep()


def fill(*, url: str, future: int) -> None:
    """Make the tables and store jobs for later."""
    asyncio.run(_fill(url, future))


async def _fill(url: str, future: int) -> None:
    subject = Subject(url)
    first = now() + _FIRST_FUTURE
    async with subject.scheduler as scheduler:
        # No store in use is empty: PostgreSQL plans for a table without a page as if it stayed so.
        past = [NewJob(id=new_job_id(), task=TICK, payload="{}", state=State.SKIPPED) for _ in range(_PAST)]
        await scheduler.store.enqueue(past)
        await subject.enqueue_many(future, batch=5_000, due_at=lambda n: first + n * 1_000_000)
