"""From a URL to a store; the drivers are imported here, when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from duetime.errors import ConfigError
from duetime.model.clock import Clock, SystemClock
from duetime.model.names import check_namespace
from duetime.stores.base import Store

EXAMPLES = "sqlite:///jobs.db or postgresql://user:password@host/database"

_LATER = frozenset({"mysql", "mariadb", "redis", "rediss", "valkey"})


def open_store(
    url: str, *, namespace: str = "duetime", clock: Clock | None = None, auto_migrate: bool = True
) -> Store:
    """Build the store a URL names; it connects when it is opened.

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
    if kind in _LATER:
        raise ConfigError(f"{kind}:// is not available in this version; use {EXAMPLES}")
    raise ConfigError(f"{kind}:// is not a database we know; use {EXAMPLES}")


def redact(url: str) -> str:
    """Return the URL without its password, for messages."""
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
    options = _options(query, {"synchronous": ("FULL", "NORMAL")})
    path = _sqlite_path(rest)
    clock = clock or SystemClock()
    database = Database(path, synchronous="NORMAL" if options.get("synchronous") == "NORMAL" else "FULL")
    driver = SqliteDriver(database, clock=clock)
    return SqlStore(
        driver, SQLITE, namespace=namespace, clock=clock, url=url, auto_migrate=auto_migrate or path is None
    )


def _sqlite_path(rest: str) -> Path | None:
    if rest in {"", "/", "/:memory:"}:
        return None
    if not rest.startswith("/"):
        raise ConfigError(
            f"sqlite://{rest} names a host; write sqlite:///{rest} for a file here, or sqlite:////{rest} from the root"
        )
    return Path(unquote(rest[1:])).expanduser()


def _options(query: str, known: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Read the part after the question mark, refusing what is not known."""
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            raise ConfigError(
                f"the URL has the unknown option {name!r}; options are {', '.join(sorted(known))}"
            )
        allowed = known[name]
        if allowed and value.upper() not in allowed:
            raise ConfigError(f"{name} cannot be {value!r}; it is one of {', '.join(allowed)}")
        options[name] = value.upper() if allowed else value
    return options


def _postgres(url: str, namespace: str, clock: Clock | None, *, auto_migrate: bool) -> Store:
    raise ConfigError(f"postgresql:// is not available yet; use {EXAMPLES}")
