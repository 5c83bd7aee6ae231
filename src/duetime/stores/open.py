"""From a URL to a store; the drivers are imported here, when they are needed."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from duetime.errors import ConfigError, MissingDriver
from duetime.model.clock import Clock, SystemClock
from duetime.model.names import check_namespace

if TYPE_CHECKING:
    from duetime.stores.base import Store

Word = TypeVar("Word", bound=str)

EXAMPLES: Final = (
    "sqlite:///jobs.db, postgresql://user:password@host/database, mariadb://user:password@host/database "
    "or redis://host:6379/0"
)

_LARGEST_POOL: Final = 1_000
_Pooler: TypeAlias = Literal["auto", "none", "transaction"]
_POOLERS: Final[tuple[_Pooler, ...]] = ("auto", "none", "transaction")
_SYNCHRONOUS: Final[tuple[Literal["FULL", "NORMAL"], ...]] = ("FULL", "NORMAL")
_LIBPQ: Final = (
    "application_name",
    "host",
    "options",
    "passfile",
    "port",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslpassword",
    "sslrootcert",
    "target_session_attrs",
    "user",
)
_LATER: Final = frozenset({"valkey"})


def open_store(
    url: str, *, namespace: str = "duetime", clock: Clock | None = None, auto_migrate: bool = True
) -> Store:
    """Build the store a URL names; it connects when it is opened.

    Unless `auto_migrate`, neither tables are made nor the file of a SQLite database.
    With a `clock`, the store goes by it instead of the database's own; that is for tests.
    """
    check_namespace(namespace)
    if not isinstance(url, str) or "://" not in url:
        raise ConfigError(f"a database URL looks like {EXAMPLES}; this one has no ://")
    scheme = url.partition("://")[0].lower()
    kind = scheme.partition("+")[0]
    if kind == "sqlite":
        return _sqlite(url, namespace, clock, auto_migrate=auto_migrate)
    if kind in {"postgresql", "postgres"}:
        return _postgres(url, namespace, clock, auto_migrate=auto_migrate)
    if kind in {"mariadb", "mysql"}:
        return _mariadb(url, namespace, clock, auto_migrate=auto_migrate)
    if kind in {"redis", "rediss", "unix"}:
        return _redis(url, namespace, clock, auto_migrate=auto_migrate)
    if kind in _LATER:
        raise ConfigError(f"{kind}:// is not available in this version; use {EXAMPLES}")
    raise ConfigError(f"{kind}:// is not a database we know; use {EXAMPLES}")


def redact(url: str) -> str:
    """Return the URL without its password, for messages."""
    from urllib.parse import urlsplit, urlunsplit

    parts = urlsplit(url)
    if parts.password is None:
        return url
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:***@{host}"))


def _sqlite(url: str, namespace: str, clock: Clock | None, *, auto_migrate: bool) -> Store:
    from duetime.stores.sql.sqlite.database import Database
    from duetime.stores.sql.sqlite.dialect import SQLITE
    from duetime.stores.sql.sqlite.driver import SqliteDriver
    from duetime.stores.sql.store import SqlStore

    rest, _, query = url.partition("://")[2].partition("?")
    options = _options(query, {"synchronous"})
    path = _sqlite_path(rest)
    clock = clock or SystemClock()
    database = Database(path, synchronous=_choice(options, "synchronous", _SYNCHRONOUS), make=auto_migrate)
    driver = SqliteDriver(database, clock=clock)
    return SqlStore(
        driver, SQLITE, namespace=namespace, clock=clock, url=url, auto_migrate=auto_migrate or path is None
    )


def _sqlite_path(rest: str) -> str | None:
    if rest in {"", "/", "/:memory:"}:
        return None
    if not rest.startswith("/"):
        raise ConfigError(
            f"sqlite://{rest} names a host; write sqlite:///{rest} for a file here, or sqlite:////{rest} from the root"
        )
    path = os.path.expanduser(_unquoted(rest[1:]))
    return path.rstrip("/") or "/"


def _unquoted(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)


def _options(query: str, known: Collection[str]) -> dict[str, str]:
    """Read the part after the question mark, refusing what is not known."""
    if not query:
        return {}
    from urllib.parse import parse_qsl

    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in known:
            raise ConfigError(
                f"the URL has the unknown option {name!r}; options are {', '.join(sorted(known))}"
            )
    return options


def _choice(options: dict[str, str], name: str, allowed: tuple[Word, ...]) -> Word:
    """Take out an option that is one of a few words, in any case; the first is the default."""
    given = options.pop(name, allowed[0])
    for word in allowed:
        if word.lower() == given.lower():
            return word
    raise ConfigError(f"{name} cannot be {given!r}; it is one of {', '.join(allowed)}")


def _postgres(url: str, namespace: str, clock: Clock | None, *, auto_migrate: bool) -> Store:
    from urllib.parse import urlencode, urlsplit, urlunsplit

    parts = urlsplit(url)
    _check_ports(parts.netloc)
    options = _options(parts.query, {"pool", "pooler", *_LIBPQ})
    pool = _pool(options)
    pooler: _Pooler = _choice(options, "pooler", _POOLERS)
    dsn = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(options)))
    try:
        from duetime.stores.sql.postgres.driver import PostgresDriver
    except ImportError as error:
        raise MissingDriver('PostgreSQL needs a driver: pip install "duetime[postgres]"') from error
    from duetime.stores.sql.postgres.dialect import POSTGRES
    from duetime.stores.sql.store import SqlStore

    driver = PostgresDriver(dsn, namespace=namespace, clock=clock, pool=pool, pooler=pooler)
    return SqlStore(
        driver,
        POSTGRES,
        namespace=namespace,
        clock=clock or SystemClock(),
        url=redact(url),
        auto_migrate=auto_migrate,
    )


def _pool(options: dict[str, str]) -> int:
    pool = options.pop("pool", "10")
    if not pool.isdecimal() or not 1 <= int(pool) <= _LARGEST_POOL:
        raise ConfigError(f"pool must be a number from 1 to {_LARGEST_POOL}, the most connections to open")
    return int(pool)


def _mariadb(url: str, namespace: str, clock: Clock | None, *, auto_migrate: bool) -> Store:
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    _check_ports(parts.netloc)
    options = _options(parts.query, {"pool", "socket", "ssl_ca"})
    pool = _pool(options)
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise ConfigError("the URL names no database; it looks like mariadb://user:password@host/database")
    try:
        from duetime.stores.sql.mariadb.connect import connector
    except ImportError as error:
        raise MissingDriver('MariaDB needs a driver: pip install "duetime[mysql]"') from error
    from duetime.stores.sql.loader import load_hints
    from duetime.stores.sql.mariadb.checks import examine
    from duetime.stores.sql.mariadb.dialect import MARIADB
    from duetime.stores.sql.pooled.cursors import Session
    from duetime.stores.sql.pooled.polling import Family, PollingDriver
    from duetime.stores.sql.store import SqlStore

    made = connector(
        url,
        host=parts.hostname or "localhost",
        port=parts.port or 3306,
        user=unquote(parts.username or "") or None,
        password=unquote(parts.password or ""),
        database=database,
        unix_socket=options.get("socket"),
        ssl={"ca": options["ssl_ca"]} if "ssl_ca" in options else None,
        connect_timeout=5,
        read_timeout=35,
    )
    driver: PollingDriver[Session] = PollingDriver(
        made, clock=clock, pool=pool, examine=examine, family=Family.of(load_hints(MARIADB, namespace))
    )
    return SqlStore(
        driver,
        MARIADB,
        namespace=namespace,
        clock=clock or SystemClock(),
        url=redact(url),
        auto_migrate=auto_migrate,
    )


def _redis(url: str, namespace: str, clock: Clock | None, *, auto_migrate: bool) -> Store:
    try:
        from duetime.stores.redis.store import RedisStore
    except ImportError as error:
        raise MissingDriver('Redis needs a driver: pip install "duetime[redis]"') from error
    from duetime.stores.redis.connect import Address

    return RedisStore(
        Address.of(url), namespace=namespace, clock=clock, url=redact(url), auto_migrate=auto_migrate
    )


def _check_ports(netloc: str) -> None:
    for host in netloc.rpartition("@")[2].split(","):
        port = host.rpartition("]")[2].partition(":")[2]
        if port and not port.isdecimal():
            raise ConfigError(f"the port {port!r} is not a number; a URL looks like {EXAMPLES}")
