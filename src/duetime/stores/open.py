"""From a URL to a store; the drivers are imported here, when they are needed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import unquote

from duetime.errors import ConfigError, MissingDriver
from duetime.model.text import check_namespace
from duetime.model.time import Clock, SystemClock
from duetime.model.urls import (
    URL_EXAMPLES,
    DatabaseUrl,
    UrlHost,
    parse_hosts,
    parse_options,
    parse_url,
    redact,
    scheme_of,
    take_choice,
    take_number,
)
from duetime.stores.base.timeouts import DEFAULT_TIMEOUT, LONGEST_TIMEOUT, MOST_CONNECTIONS

if TYPE_CHECKING:
    from duetime.stores.base import Store

_Pooler: TypeAlias = Literal["auto", "none", "transaction"]
_POOLERS: Final[tuple[_Pooler, ...]] = ("auto", "none", "transaction")
_SYNCHRONOUS: Final[tuple[Literal["FULL", "NORMAL"], ...]] = ("FULL", "NORMAL")
_LIBPQ: Final = (
    "application_name", "host", "options", "passfile", "port", "sslcert", "sslcrl", "sslkey", "sslmode", "sslpassword",
    "sslrootcert", "target_session_attrs", "user",
)  # fmt: skip
_UNVERIFIED: Final = frozenset({"disable", "allow", "prefer"})


def open_store(
    url: str, *, namespace: str = "duetime", clock: Clock | None = None, auto_migrate: bool = True
) -> Store:
    """Build the store a URL names; it connects when it is opened.

    Unless `auto_migrate`, neither tables are made nor the file of a SQLite database.
    With a `clock`, the store goes by it instead of the database's own; that is for tests.
    """
    check_namespace(namespace)
    kind = scheme_of(url).partition("+")[0]
    build = _BUILDERS.get(kind)
    if build is None:
        raise ConfigError(f"{kind}:// is not a database we know; use {URL_EXAMPLES}")
    return build(url, namespace, clock, auto_migrate=auto_migrate)


def _sqlite(url: str, namespace: str, clock: Clock | None, *, auto_migrate: bool) -> Store:
    from duetime.stores.sql.sqlite.database import Database, Synchronous
    from duetime.stores.sql.sqlite.dialect import SQLITE
    from duetime.stores.sql.sqlite.driver import SqliteDriver
    from duetime.stores.sql.store import SqlStore

    rest, _, query = url.partition("://")[2].partition("?")
    options = parse_options(query, {"synchronous"})
    path = _sqlite_path(rest)
    clock = clock or SystemClock()
    synchronous: Synchronous = take_choice(options, "synchronous", _SYNCHRONOUS)
    driver = SqliteDriver(Database(path, synchronous=synchronous, make=auto_migrate), clock=clock)
    makes = auto_migrate or path is None
    return SqlStore(driver, SQLITE, namespace=namespace, clock=clock, url=url, auto_migrate=makes)


def _sqlite_path(rest: str) -> str | None:
    if rest in {"", "/", "/:memory:"}:
        return None
    if not rest.startswith("/"):
        forms = "sqlite:///jobs.db for a file here, or sqlite:////var/lib/jobs.db from the root"
        raise ConfigError(f"the URL names a host, and SQLite has none; write {forms}")
    path = os.path.expanduser(unquote(rest[1:]))
    if "\0" in path:
        raise ConfigError("the URL has a NUL (%00) in it, which no file name has; remove it")
    return path.rstrip("/") or "/"


def _postgres(url: str, namespace: str, clock: Clock | None, *, auto_migrate: bool) -> Store:
    parsed = parse_url(url, options={"pool", "pooler", "timeout", *_LIBPQ})
    pool, timeout = _take_pool_and_timeout(parsed.options)
    pooler: _Pooler = take_choice(parsed.options, "pooler", _POOLERS)
    dsn = _dsn(parsed)
    try:
        from duetime.stores.sql.postgres.connection import PostgresConnector
    except ImportError as error:
        raise MissingDriver('PostgreSQL needs a driver: pip install "duetime[postgres]"') from error
    from duetime.stores.sql.postgres.dialect import POSTGRES
    from duetime.stores.sql.postgres.driver import PostgresDriver
    from duetime.stores.sql.store import SqlStore

    connector = PostgresConnector(dsn, pooler=pooler, timeout=timeout)
    driver = PostgresDriver(connector, namespace=namespace, clock=clock, pool=pool)
    return SqlStore(driver, POSTGRES, namespace=namespace, url=redact(url), auto_migrate=auto_migrate)


def _dsn(url: DatabaseUrl) -> str:
    """Write a URL for the driver: each part percent-encoded, and `sslmode` spelled out where a certificate is named."""
    from urllib.parse import quote, urlencode

    options = url.options
    parse_hosts(options.get("host", ""))
    parse_hosts(",".join(f"localhost:{port}" for port in options.get("port", "").split(",")))
    _check_files(options, "sslrootcert", "sslcert", "sslkey", "sslcrl")
    mode = options.get("sslmode") or os.environ.get("PGSSLMODE")
    if "sslrootcert" in options or (mode is None and os.environ.get("PGSSLROOTCERT")):
        mode = options.setdefault("sslmode", "verify-full")
        if mode in _UNVERIFIED:
            raise ConfigError(
                f"sslrootcert names a trusted authority, but sslmode={mode} checks no certificate; use sslmode=verify-full"
            )
    login = quote(url.user or "", safe="")
    if url.password is not None:
        login += f":{quote(url.password, safe='')}"
    hosts = ",".join(quote(str(host), safe="[]:") for host in url.hosts)
    return f"postgresql://{login and login + '@'}{hosts}{quote(url.path)}?{urlencode(options)}".rstrip("?")


def _check_files(options: dict[str, str], *names: str) -> None:
    """Refuse files that cannot be read; drivers say so as if the server could not be reached."""
    for name in names:
        try:
            open(options.get(name, os.devnull), "rb").close()
        except OSError as error:
            raise ConfigError(f"the file that {name} names in the URL cannot be read: {error}") from error


def _take_pool_and_timeout(options: dict[str, str]) -> tuple[int, float]:
    pool = take_number(options, "pool", 10, most=MOST_CONNECTIONS)
    return pool, float(take_number(options, "timeout", int(DEFAULT_TIMEOUT), most=LONGEST_TIMEOUT))


def _mariadb(url: str, namespace: str, clock: Clock | None, *, auto_migrate: bool) -> Store:
    parsed = parse_url(url, options={"pool", "socket", "ssl_ca", "timeout"})
    options = parsed.options
    pool, timeout = _take_pool_and_timeout(options)
    _check_files(options, "ssl_ca")
    database = parsed.path.lstrip("/")
    if len(parsed.hosts) > 1:
        raise ConfigError("a URL of MariaDB names one host; for several, use a proxy or a name for all")
    if not database:
        raise ConfigError("the URL names no database; it looks like mariadb://user:password@host/database")
    try:
        from duetime.stores.sql.mariadb.connection import MariaDbConnector
    except ImportError as error:
        raise MissingDriver('MariaDB needs a driver: pip install "duetime[mysql]"') from error
    from duetime.stores.sql.mariadb.dialect import MARIADB
    from duetime.stores.sql.mariadb.driver import MariaDbDriver
    from duetime.stores.sql.store import SqlStore

    [host] = parsed.hosts or [UrlHost("localhost", None)]
    connector = MariaDbConnector(
        url,
        timeout=timeout,
        host=host.name,
        port=host.port or 3306,
        user=parsed.user,
        # The driver would write it in Latin-1.
        password=(parsed.password or "").encode(),
        database=database,
        unix_socket=options.get("socket"),
        ssl={"ca": options["ssl_ca"]} if "ssl_ca" in options else None,
    )
    driver = MariaDbDriver(connector, namespace=namespace, clock=clock, pool=pool)
    return SqlStore(driver, MARIADB, namespace=namespace, url=redact(url), auto_migrate=auto_migrate)


def _hybrid(url: str, namespace: str, clock: Clock | None, *, auto_migrate: bool) -> Store:
    from duetime.stores.hybrid.address import HybridAddress
    from duetime.stores.hybrid.store import HybridStore

    address = HybridAddress.of(url)
    tiers = {
        tier: open_store(one, namespace=namespace, clock=clock, auto_migrate=auto_migrate)
        for tier, one in address.urls.items()
    }
    return HybridStore(tiers, address.routes, far_queues=address.far_queues, clock=clock)


def _redis(url: str, namespace: str, clock: Clock | None, *, auto_migrate: bool) -> Store:
    try:
        from duetime.stores.redis.store import RedisStore
    except ImportError as error:
        raise MissingDriver('Redis needs a driver: pip install "duetime[redis]"') from error
    from duetime.stores.redis.address import RedisAddress

    return RedisStore(
        RedisAddress.of(url), namespace=namespace, clock=clock, url=redact(url), auto_migrate=auto_migrate
    )


_BUILDERS: Final = {
    "sqlite": _sqlite,
    "hybrid": _hybrid,
    **dict.fromkeys(("postgresql", "postgres"), _postgres),
    **dict.fromkeys(("mariadb", "mysql"), _mariadb),
    **dict.fromkeys(("redis", "rediss", "unix"), _redis),
}
