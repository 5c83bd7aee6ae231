"""What PostgreSQL's errors mean for the caller."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import asyncpg

from duetime.errors import (
    ConfigError,
    DuetimeError,
    KeyTaken,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from duetime.failpoints import InjectedFault
from duetime.stores.sql.driver import Duplicate, TakenBack


class Place(NamedTuple):
    """A database as messages name it, never with its password."""

    user: str
    host: str
    database: str
    password: str

    @classmethod
    def of(cls, dsn: str) -> Place:
        """Read a URL as far as it goes; what it leaves out, the driver takes from the environment."""
        try:
            parts = urlsplit(dsn)
            host = parts.netloc.rpartition("@")[2]
            user, password = unquote(parts.username or ""), unquote(parts.password or "")
        except ValueError:
            return cls("the user", "the server", "", "")
        database = unquote(parts.path.lstrip("/"))
        return cls(user or "the user", host or "the local server", database or user, password)

    def __str__(self) -> str:
        return f"PostgreSQL at {self.host}"

    def say(self, error: BaseException) -> str:
        """Return an error's text without our password, should it be in there."""
        text = str(error) or type(error).__name__
        return text.replace(self.password, "***") if self.password else text


class Stale(ConnectionError):
    """A connection was found lost before anything was sent that could have had an effect."""


_CONFLICTS = frozenset({"40001", "40P01", "55P03"})
_FATAL_SEVERITIES = frozenset({"FATAL", "PANIC"})
_READ_ONLY = "25006"

_MEANINGS: tuple[tuple[str, type[StoreError], str], ...] = (
    (
        "28",
        StoreUnusable,
        "{user} may not log in at {host} ({error}); check the user and password in the URL",
    ),
    ("3D000", StoreUnusable, 'there is no database "{database}" at {host}; create it: createdb {database}'),
    ("42501", StoreUnusable, '{error}: grant {user} the rights on the tables in "{database}"'),
    ("42P01", SchemaMismatch, "{error}: run `duetime migrate`"),
    ("42703", SchemaMismatch, "{error}: run `duetime migrate`"),
    ("3F000", StoreUnusable, "{error}; create the schema or set the user's search_path"),
    # Unavailable rather than unusable: after a failover the next connection may reach the new primary.
    (_READ_ONLY, StoreUnavailable, "PostgreSQL at {host} is read-only at present ({error})"),
    ("25P03", StoreUnavailable, "{error}"),
    ("53100", StoreUnavailable, "the disk of PostgreSQL at {host} is full ({error})"),
    (
        "53300",
        StoreUnavailable,
        "PostgreSQL at {host} has no connection left for us ({error}); raise its max_connections or lower ?pool=",
    ),
    ("53", StoreUnavailable, "PostgreSQL at {host} is short of resources ({error})"),
    ("57014", StoreUnavailable, "PostgreSQL at {host} took too long and was stopped ({error})"),
    ("57P", StoreUnavailable, "PostgreSQL at {host} is stopping or starting ({error})"),
    ("23505", Duplicate, "{error}"),
    ("40", StoreUnavailable, "too many others change the same rows at once ({error})"),
    ("55P03", StoreUnavailable, "somebody keeps a lock on our tables ({error})"),
    ("08", StoreUnavailable, "the connection to PostgreSQL at {host} was lost ({error})"),
    ("58", StoreUnavailable, "PostgreSQL at {host} has trouble with its system ({error})"),
)

_CLIENT_SIDE: tuple[tuple[type[Exception], type[DuetimeError], str], ...] = (
    (InjectedFault, StoreUnavailable, "{error}"),
    (TimeoutError, StoreUnavailable, "{place} did not answer in time"),
    (OSError, StoreUnavailable, "{place} cannot be reached: {error}"),
    (asyncpg.ClientConfigurationError, ConfigError, "the URL for {place} cannot be used: {error}"),
    (asyncpg.InternalClientError, StoreUnavailable, "the connection to {place} broke: {error}"),
    (asyncpg.InterfaceError, StoreError, "{place}: {error}"),
)
"""Looked through in order; the narrower come first."""


def translate(error: BaseException, place: Place) -> BaseException:
    """Return the error to raise instead; what is not the database's comes back as it is."""
    said = place.say(error)
    if isinstance(error, asyncpg.PostgresError):
        return _judge(error, said, place)
    for source, kind, text in _CLIENT_SIDE:
        if isinstance(error, source):
            return kind(text.format(place=place, error=said))
    return error


def _judge(error: asyncpg.PostgresError, said: str, place: Place) -> StoreError:
    code = _code(error)
    for prefix, kind, text in _MEANINGS:
        if code.startswith(prefix):
            return kind(text.format(error=said, user=place.user, host=place.host, database=place.database))
    return StoreError(f"{place} refused a statement: {said} ({code or 'no code'})")


def is_conflict(error: BaseException) -> bool:
    """Whether the whole script can be run again, because the transaction of this one came to nothing."""
    if isinstance(error, asyncpg.InvalidCachedStatementError | asyncpg.OutdatedSchemaCacheError):
        # The tables were migrated under us; the driver has dropped what it knew of them.
        return True
    return isinstance(error, asyncpg.PostgresError) and _code(error) in _CONFLICTS


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone."""
    if isinstance(error, asyncpg.PostgresError):
        return _code(error).startswith(("08", "57P")) or error.severity_en in _FATAL_SEVERITIES
    if isinstance(error, asyncpg.InternalClientError):
        return True
    return isinstance(error, OSError) and not isinstance(error, TimeoutError)


def was_never_sent(error: BaseException) -> bool:
    """Whether the driver found the connection unusable before it sent anything."""
    if isinstance(error, asyncpg.InternalClientError):
        # The server said goodbye and the end of the stream has not been read yet; checked before each sending.
        return str(error).startswith("cannot switch to state")
    return isinstance(error, asyncpg.InterfaceError) and "connection is closed" in str(error)


def spares_connection(error: BaseException) -> bool:
    """Whether the connection can go on to be used once its transaction is rolled back."""
    if isinstance(error, KeyTaken | TakenBack):
        return True
    return isinstance(error, asyncpg.PostgresError) and not is_lost(error) and _code(error) != _READ_ONLY


def _code(error: asyncpg.PostgresError) -> str:
    # Errors that the client makes up itself have none.
    code: str | None = getattr(error, "sqlstate", None)
    return code or ""
