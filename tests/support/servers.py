"""The servers of one test run: a PostgreSQL and a MariaDB shared by all test processes, a pgbouncer and a Redis for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar
from uuid import uuid4

import pytest

from tools.servers import (
    EtcdServer,
    MariaDb,
    MariaDbServer,
    PgBouncer,
    Postgres,
    PostgresServer,
    RedisServer,
    ServerMissing,
)
from tools.servers.certificates import Authority

Made = TypeVar("Made")
Server = TypeVar("Server", PostgresServer, MariaDbServer)

_POSTGRES = pytest.StashKey[PostgresServer]()
_MARIADB = pytest.StashKey[MariaDbServer]()


class _Node(Protocol):
    """The part of xdist's worker controller that we use."""

    config: pytest.Config
    workerinput: dict[str, object]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: _Node) -> None:
    """Start the shared servers in the controlling process and tell each test process their ports."""
    chosen: str = node.config.getoption("--store")
    if chosen != "mariadb":
        node.workerinput["postgres_port"] = _port(node.config, _POSTGRES, PostgresServer)
    if chosen in {"mariadb", "all"}:
        node.workerinput["mariadb_port"] = _port(node.config, _MARIADB, _quick_mariadb)


def pytest_unconfigure(config: pytest.Config) -> None:
    for server in (config.stash.get(_POSTGRES, None), config.stash.get(_MARIADB, None)):
        if server is not None:
            server.close()


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Postgres:
    """The PostgreSQL that all tests share; a test that wants to stop one takes `own_postgres`."""
    port = getattr(request.config, "workerinput", {}).get("postgres_port")
    return Postgres(port) if port else _made(lambda: _shared(request.config, _POSTGRES, PostgresServer))


@pytest.fixture(scope="session")
def mariadb(request: pytest.FixtureRequest) -> MariaDb:
    """The MariaDB that all tests share; a test that wants to stop one takes `own_mariadb`."""
    port = getattr(request.config, "workerinput", {}).get("mariadb_port")
    return MariaDb(port) if port else _made(lambda: _shared(request.config, _MARIADB, _quick_mariadb))


@pytest.fixture(scope="session")
def pgbouncer(postgres: Postgres) -> Iterator[PgBouncer]:
    """A pooler in transaction mode in front of the shared PostgreSQL."""
    with _made(lambda: PgBouncer(postgres)) as pooler:
        yield pooler


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL for this test alone, which it may stop, restart and kill."""
    with _made(PostgresServer) as server:
        yield server


@pytest.fixture
def own_mariadb() -> Iterator[MariaDbServer]:
    """A MariaDB for this test alone, which it may stop, restart and kill."""
    with _made(MariaDbServer) as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """The Redis that the tests of one process share; it starts in a moment."""
    with _made(RedisServer) as server:
        yield server


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A Redis for this test alone, which it may stop, restart and kill."""
    with _made(RedisServer) as server:
        yield server


@pytest.fixture(scope="session")
def etcd() -> Iterator[EtcdServer]:
    """The etcd that the tests of one process share."""
    with _made(EtcdServer) as server:
        yield server


@pytest.fixture(scope="session")
def authority() -> Iterator[Authority]:
    """Signs certificates for servers that speak TLS."""
    with _made(Authority) as made:
        yield made


@pytest.fixture
def mariadb_database(mariadb: MariaDb) -> Iterator[str]:
    """The name of an empty database of the shared MariaDB, dropped after the test."""
    name = f"test_{uuid4().hex}"
    mariadb.create_database(name)
    yield name
    mariadb.drop_database(name)


def _quick_mariadb() -> MariaDbServer:
    return MariaDbServer(fsync=False)


def _port(config: pytest.Config, key: pytest.StashKey[Server], make: Callable[[], Server]) -> int | None:
    try:
        return _shared(config, key, make).port
    except ServerMissing:
        return None


def _shared(config: pytest.Config, key: pytest.StashKey[Server], make: Callable[[], Server]) -> Server:
    if key not in config.stash:
        server = make()
        config.stash[key] = server
        server.start()
    return config.stash[key]


def _made(make: Callable[[], Made]) -> Made:
    """Make what a test needs, or skip the test where its program is missing; `CI` allows no skip."""
    try:
        return make()
    except ServerMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(f"CI allows no skipped test: {missing}", pytrace=False)
        pytest.skip(str(missing))
