"""The addresses of empty stores, one per test."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from tools.servers import MariaDb, PgBouncer, Postgres, RedisServer

_STORES = {
    "sqlite": ["sqlite"],
    "postgres": ["postgres"],
    "pgbouncer": ["pgbouncer"],
    "mariadb": ["mariadb"],
    "redis": ["redis"],
    "hybrid": ["hybrid"],
    "all": ["sqlite", "postgres", "mariadb", "redis"],
}
SQL = frozenset({"sqlite", "postgres", "pgbouncer", "mariadb"})
"""Those that have statements, tables, and transactions to share: what such a test is about, the others cannot do."""

SERVERS = SQL - {"sqlite"}
"""Those SQL databases in which many write at the same time."""
UNTYPED = frozenset({"sqlite", "redis"})
"""Those that keep anything where a number should be."""
POOLED = frozenset(
    {
        "TestWakeups",  # What a worker hears of goes over a connection of its own.
        "TestPulse", "TestPeers", "TestRescue",  # Leases, and the locks that tell of a death.
        "TestClaim", "TestFencing", "TestSettle", "TestRepeatedSettlement",  # Claims whose answers may be lost.
        "TestEnqueue", "TestLend", "TestBlocking", "TestKeysUnderConcurrency",  # Transactions.
        "TestWriteSchedules", "TestLostAnswers", "TestLostReplies",
        "TestLifecycle", "TestMovedOn",  # Migrations, and copies in one snapshot.
    }
)  # fmt: skip
"""The parts of the suite that a pooler in transaction mode could break. The rest is the same SQL on the same server."""
DEAF = frozenset({"pgbouncer"})
"""Those whose workers look by themselves for what others do, so that they send more than is needed elsewhere."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store", choices=list(_STORES), default="all", help="the stores that store tests run on"
    )


def chosen(config: pytest.Config) -> list[str]:
    """The kinds of stores that `--store` chose."""
    return _STORES[config.getoption("--store")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds = chosen(metafunc.config)
    if "store_url" in metafunc.fixturenames:
        every = metafunc.config.getoption("--store") == "all" and "make_store" in metafunc.fixturenames
        pooled = every and metafunc.cls is not None and metafunc.cls.__name__ in POOLED
        more = ["pgbouncer"] * pooled + ["hybrid"] * every
        metafunc.parametrize("store_url", [*kinds, *more], indirect=True)
    hearing = [kind for kind in kinds if kind not in DEAF]
    narrowed = {
        "sql_url": [kind for kind in kinds if kind in SQL],
        "untyped_url": [kind for kind in kinds if kind in UNTYPED],
        "server_url": [kind for kind in kinds if kind in SERVERS],
        "hearing_url": hearing,
        "hearing_sql_url": [kind for kind in hearing if kind in SQL],
    }
    for name, some in narrowed.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, some, indirect=True)


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty store, once for each kind of store that `--store` chose."""
    return _url(request)


@pytest.fixture
def sql_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty database, once for each kind of SQL database among the stores that were chosen."""
    return _url(request)


@pytest.fixture
def server_url(request: pytest.FixtureRequest) -> str:
    """The same for databases in which many write at the same time."""
    return _url(request)


@pytest.fixture
def untyped_url(request: pytest.FixtureRequest) -> str:
    """The same for stores that keep anything where a number should be."""
    return _url(request)


@pytest.fixture
def hearing_url(request: pytest.FixtureRequest) -> str:
    """The same for stores whose workers hear of what others do."""
    return _url(request)


@pytest.fixture
def hearing_sql_url(request: pytest.FixtureRequest) -> str:
    """The same for SQL databases whose workers hear of what others do."""
    return _url(request)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'duetime.db'}"


@pytest.fixture
def postgres_url(postgres: Postgres, postgres_database: str) -> str:
    """The address of a PostgreSQL database without jobs."""
    return postgres.url(postgres_database)


@pytest.fixture
def pgbouncer_url(pgbouncer: PgBouncer, postgres_database: str) -> str:
    """The address of a PostgreSQL database without jobs, by way of a pooler in transaction mode."""
    return pgbouncer.url(postgres_database)


@pytest.fixture
def redis_url(redis: RedisServer) -> str:
    """The address of an empty Redis database."""
    redis.flush()
    return redis.url()


@pytest.fixture
def hybrid_url(redis_url: str, postgres_url: str) -> str:
    """The address of a Redis database and a PostgreSQL database that make one store without jobs."""
    return hybrid_of(redis_url, postgres_url)


def hybrid_of(near: str, far: str, **options: str) -> str:
    """The address of a store that is made of two."""
    query = urlencode({"far": far, **options})
    return f"hybrid+{near}{'&' if '?' in near else '?'}{query}"


@pytest.fixture
def mariadb_url(mariadb: MariaDb, mariadb_database: str) -> str:
    """The address of an empty MariaDB database."""
    return mariadb.url(mariadb_database)


def _url(request: pytest.FixtureRequest) -> str:
    """The address of a store of the kind that the test was parametrized with."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url
