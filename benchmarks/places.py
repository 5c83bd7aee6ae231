"""The databases of a run: one empty, one full of jobs for later, one for the bare loops."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from redis import Redis

from benchmarks import children
from benchmarks.ledger import now
from benchmarks.limits import mariadb, postgres, redis, sqlite
from benchmarks.sizes import Sizes
from benchmarks.subject import TICK, Subject
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.model.states import State
from tools.servers import MariaDbServer, PostgresServer, RedisServer


class Place(Protocol):
    """A database that Duetime is measured on."""

    @property
    def url(self) -> str:
        """Its address."""

    def keep(self) -> None:
        """Take what is stored now for the state that every measure begins with."""

    def tidy(self) -> None:
        """Remove what was stored since."""


class Limits(Protocol):
    """What the database can do at best."""

    def inserts(self, sizes: Sizes) -> dict[str, float]:
        """Inserts per second: `single`, `bulk` and, where there can be several at once, `at_once`."""

    def drain(self, jobs: int, batch: int) -> float:
        """Jobs per second of the bare loop."""

    def round_trips(self, pings: int) -> float:
        """Milliseconds for an insert, a hint and a claim."""

    def locks(self, pairs: int) -> float:
        """How often per second a lock is taken and released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where one run measures."""

    empty: Place
    filled: Place
    limits: Limits
    facts: dict[str, str]
    server: int | None = None
    """The process of the server, where there is one."""


_FIRST_FUTURE = 86_400 * 1_000_000
"""Jobs for later are due from a day ahead, one per second."""
_PAST = 1_000


def prepare(empty: Place, filled: Place, future: int) -> None:
    """Make both places ready to be measured on."""
    for place, count in ((empty, 0), (filled, future)):
        children.run(fill, url=place.url, future=count)
        place.keep()


def fill(*, url: str, future: int) -> None:
    """Make the tables and store jobs for later."""
    asyncio.run(fill_all(url, future))


async def fill_all(url: str, future: int) -> None:
    """Do the same in an event loop that runs already."""
    subject = Subject(url)
    first = now() + _FIRST_FUTURE
    async with subject.scheduler as scheduler:
        # No store in use is empty: PostgreSQL plans for a table without a page as if it stayed so.
        past = [NewJob(id=new_job_id(), task=TICK, payload="{}", state=State.SKIPPED) for _ in range(_PAST)]
        await scheduler.store.enqueue(past)
        await subject.enqueue_many(future, batch=5_000, due_at=lambda n: first + n * 1_000_000)


@dataclass(frozen=True, slots=True)
class ServedLimits:
    """What a server can do at best, in a database of its own, by one of the modules in `benchmarks.limits`."""

    bare: ModuleType
    url: str

    def inserts(self, sizes: Sizes) -> dict[str, float]:
        found: dict[str, float] = children.run(
            self.bare.inserts, url=self.url, singles=sizes.singles, at_once=sizes.at_once, bulk=sizes.bulk
        )
        return found

    def drain(self, jobs: int, batch: int) -> float:
        return float(children.run(self.bare.drain, url=self.url, jobs=jobs, batch=batch))

    def round_trips(self, pings: int) -> float:
        return float(children.run(self.bare.round_trips, url=self.url, pings=pings))

    def locks(self, pairs: int) -> float:
        return float(children.run(self.bare.locks, url=self.url, pairs=pairs))


@dataclass(frozen=True, slots=True)
class _ServerDatabase:
    server: MariaDbServer | PostgresServer
    name: str
    flush: tuple[str, ...]

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    def keep(self) -> None:
        self._execute(KEEP, *self.flush)

    def tidy(self) -> None:
        self._execute(*TIDY, *self.flush)

    def _execute(self, *statements: str) -> None:
        for statement in statements:
            self.server.execute(statement, database=self.name)


def table_places(
    server: MariaDbServer | PostgresServer,
    future: int,
    *,
    flush: tuple[str, ...],
    limits: Callable[[str], ServedLimits],
    facts: dict[str, str],
) -> Places:
    """Make databases in a server that runs; `flush` writes everything out and gathers statistics."""
    for name in ("empty", "filled", "bare"):
        server.create_database(name)
    empty, filled = (_ServerDatabase(server, name, flush) for name in ("empty", "filled"))
    prepare(empty, filled, future)
    return Places(
        empty=empty,
        filled=filled,
        limits=limits(server.url("bare")),
        facts=facts,
        server=server.pid,
    )


KEEP = "CREATE TABLE filling AS SELECT max(id) AS id FROM duetime_jobs"
TIDY = (
    # Job ids rise with time: those made after the filling are the measures' own.
    "DELETE FROM duetime_jobs WHERE id > (SELECT coalesce(max(id), '') FROM filling)",
    "DELETE FROM duetime_workers",
    "DELETE FROM duetime_schedules",
)


_FLUSH_SQLITE = "PRAGMA wal_checkpoint(TRUNCATE)"


@dataclass(frozen=True, slots=True)
class _SqliteFile:
    path: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def keep(self) -> None:
        self._execute(KEEP, "ANALYZE", _FLUSH_SQLITE)

    def tidy(self) -> None:
        self._execute(*TIDY, _FLUSH_SQLITE)

    def _execute(self, *statements: str) -> None:
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)


@dataclass(frozen=True, slots=True)
class SqliteLimits:
    """What SQLite can do at best, in a folder of its own."""

    folder: str

    def inserts(self, sizes: Sizes) -> dict[str, float]:
        found: dict[str, float] = children.run(
            sqlite.inserts, folder=self.folder, singles=sizes.singles, bulk=sizes.bulk
        )
        # SQLite has one writer: callers at once can only be compared with one caller.
        return {**found, "at_once": found["single"]}

    def drain(self, jobs: int, batch: int) -> float:
        return float(children.run(sqlite.drain, folder=self.folder, jobs=jobs, batch=batch))

    def round_trips(self, pings: int) -> float:
        return float(children.run(sqlite.round_trips, folder=self.folder, pings=pings))

    def locks(self, pairs: int) -> float:
        return float(children.run(sqlite.locks, folder=self.folder, pairs=pairs))


@contextmanager
def sqlite_places(future: int) -> Iterator[Places]:
    """Make files in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="duetime-bench-") as folder:
        empty, filled = (_SqliteFile(Path(folder) / f"{name}.db") for name in ("empty", "filled"))
        prepare(empty, filled, future)
        facts = {"SQLite": sqlite3.sqlite_version, "settings": "WAL, synchronous=FULL"}
        yield Places(empty=empty, filled=filled, limits=SqliteLimits(folder), facts=facts)


_FLUSH_POSTGRES = ("VACUUM ANALYZE duetime_jobs", "CHECKPOINT")
_SHOWN_POSTGRES = ("fsync", "synchronous_commit", "shared_buffers", "max_connections")


def postgres_limits(url: str) -> ServedLimits:
    """Return what PostgreSQL can do at best."""
    return ServedLimits(postgres, url)


def postgres_facts(server: PostgresServer) -> dict[str, str]:
    """Return its version, and the settings that figures depend on."""
    settings = ", ".join(f"{name}={server.execute(f'SHOW {name}')}" for name in _SHOWN_POSTGRES)
    return {"PostgreSQL": server.execute("SHOW server_version"), "settings": settings}


@contextmanager
def postgres_places(future: int) -> Iterator[Places]:
    """Start a server and make databases in it."""
    with PostgresServer(fsync=True) as server:
        yield table_places(
            server, future, flush=_FLUSH_POSTGRES, limits=postgres_limits, facts=postgres_facts(server)
        )


FLUSH_MARIADB = ("ANALYZE TABLE duetime_jobs",)
_SHOWN_MARIADB = (
    "innodb_flush_log_at_trx_commit",
    "log_bin",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
)


def mariadb_limits(url: str) -> ServedLimits:
    """Return what MariaDB can do at best."""
    return ServedLimits(mariadb, url)


def mariadb_facts(server: MariaDbServer) -> dict[str, str]:
    """Return its version, and the settings that figures depend on."""
    settings = ", ".join(f"{name}={server.execute(f'SELECT @@{name}')}" for name in _SHOWN_MARIADB)
    return {"MariaDB": server.execute("SELECT version()"), "settings": settings}


@contextmanager
def mariadb_places(future: int) -> Iterator[Places]:
    """Start a server and make databases in it."""
    with MariaDbServer() as server:
        yield table_places(
            server, future, flush=FLUSH_MARIADB, limits=mariadb_limits, facts=mariadb_facts(server)
        )


_SHOWN_REDIS = ("appendonly", "appendfsync")
_NAMESPACE = "{duetime}"
_JOBS = f"{_NAMESPACE}:jobs"
_LINES = f"{_NAMESPACE}:lines"
_OTHERS = f"{_NAMESPACE}:[^j]*"
"""All keys but `jobs` and those of single jobs."""
_LAST = "filling:last"
_KEPT = "filling:kept"
_KEPT_LINES = "filling:lines"
_CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class RedisDatabase:
    """One of the numbered databases of a server."""

    server: RedisServer
    number: int

    @property
    def url(self) -> str:
        return self.server.url(self.number)

    def keep(self) -> None:
        with connected(self.url) as client:
            client.set(_LAST, client.zrange(_JOBS, -1, -1)[0])
            client.sadd(_KEPT, _JOBS, *client.scan_iter(_OTHERS, count=_CHUNK))
            client.copy(_LINES, _KEPT_LINES)
            rewritten(client)

    def tidy(self) -> None:
        """Remove the jobs behind the last one, and all keys that were not there."""
        with connected(self.url) as client:
            kept = client.smembers(_KEPT)
            # Job ids rise with time: those made after the filling are the measures' own.
            own = client.zrange(_JOBS, b"(" + client.get(_LAST), "+", bylex=True)
            indexes = [key for key in kept if client.type(key) == b"zset"]
            for some in _chunks(own):
                client.unlink(*(f"{_NAMESPACE}:job:{job.decode()}" for job in some))
                for index in indexes:
                    client.zrem(index, *some)
            for some in _chunks(key for key in client.scan_iter(_OTHERS, count=_CHUNK) if key not in kept):
                client.unlink(*some)
            client.copy(_KEPT_LINES, _LINES, replace=True)
            _written(client)


def redis_limits(url: str) -> ServedLimits:
    """Return what Redis can do at best."""
    return ServedLimits(redis, url)


@contextmanager
def redis_places(future: int) -> Iterator[Places]:
    """Start a server and make databases in it."""
    with RedisServer() as server:
        empty, filled, bare = (RedisDatabase(server, number) for number in range(3))
        prepare(empty, filled, future)
        with connected(bare.url) as client:
            facts = {"Redis": client.info("server")["redis_version"], "settings": shown(client)}
        yield Places(
            empty=empty, filled=filled, limits=redis_limits(bare.url), facts=facts, server=server.pid
        )


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """Talk to a server; what its client says of types fits neither texts nor bytes."""
    with Redis.from_url(url) as client:
        yield client


def shown(client: Any) -> str:
    """Return the settings that figures depend on."""
    found = client.config_get(*_SHOWN_REDIS)
    return ", ".join(f"{name}={found[name]}" for name in _SHOWN_REDIS)


def rewritten(client: Any) -> None:
    """Write the append-only file anew, so that this does not happen while something is measured."""
    _written(client)
    client.bgrewriteaof()
    _written(client)


def _written(client: Any) -> None:
    while any(client.info("persistence")[f"aof_rewrite_{what}"] for what in ("in_progress", "scheduled")):
        time.sleep(0.05)


def _chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    some: list[Any] = []
    for value in values:
        some.append(value)
        if len(some) == _CHUNK:
            yield some
            some = []
    if some:
        yield some


PLACES: dict[str, Callable[[int], AbstractContextManager[Places]]] = {
    "sqlite": sqlite_places,
    "postgres": postgres_places,
    "mariadb": mariadb_places,
    "redis": redis_places,
}
