"""The servers of one test run: a PostgreSQL shared by all test processes, a pgbouncer and a Redis for each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NoReturn, Protocol

import pytest

from tools.servers import PgBouncer, Postgres, PostgresServer, RedisServer, ServerMissing
from tools.servers.certificates import Authority

_SHARED = pytest.StashKey[PostgresServer]()


class _Node(Protocol):
    """The part of xdist's worker controller that we use."""

    config: pytest.Config
    workerinput: dict[str, object]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: _Node) -> None:
    """Start the shared PostgreSQL in the controlling process and tell each test process its port."""
    try:
        node.workerinput["postgres_port"] = _shared(node.config).port
    except ServerMissing:
        node.workerinput["postgres_port"] = None


def pytest_unconfigure(config: pytest.Config) -> None:
    if server := config.stash.get(_SHARED, None):
        server.close()


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Postgres:
    """The PostgreSQL that all tests share; a test that wants to stop one takes `own_postgres`."""
    port = getattr(request.config, "workerinput", {}).get("postgres_port")
    try:
        return Postgres(port) if port else _shared(request.config)
    except ServerMissing as missing:
        _cannot_run(missing)


@pytest.fixture(scope="session")
def pgbouncer(postgres: Postgres) -> Iterator[PgBouncer]:
    """A pooler in transaction mode in front of the shared PostgreSQL."""
    try:
        pooler = PgBouncer(postgres)
    except ServerMissing as missing:
        _cannot_run(missing)
    with pooler:
        yield pooler


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL for this test alone, which it may stop, restart and kill."""
    try:
        server = PostgresServer()
    except ServerMissing as missing:
        _cannot_run(missing)
    with server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """The Redis that the tests of one process share; it starts in a moment."""
    try:
        server = RedisServer()
    except ServerMissing as missing:
        _cannot_run(missing)
    with server:
        yield server


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A Redis for this test alone, which it may stop, restart and kill."""
    try:
        server = RedisServer()
    except ServerMissing as missing:
        _cannot_run(missing)
    with server:
        yield server


@pytest.fixture(scope="session")
def authority() -> Iterator[Authority]:
    """Signs certificates for servers that speak TLS."""
    try:
        made = Authority()
    except ServerMissing as missing:
        _cannot_run(missing)
    with made:
        yield made


def _shared(config: pytest.Config) -> PostgresServer:
    if _SHARED not in config.stash:
        server = PostgresServer()
        config.stash[_SHARED] = server
        server.start()
    return config.stash[_SHARED]


def _cannot_run(missing: ServerMissing) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"CI allows no skipped test: {missing}", pytrace=False)
    pytest.skip(str(missing))
