"""What PostgreSQL's errors mean for the caller."""

from __future__ import annotations

import asyncpg

from duetime.errors import ConfigError, DuetimeError, KeyTaken, StoreError, StoreUnavailable, StoreUnusable
from duetime.stores.sql.driver import ScriptUndone
from duetime.stores.sql.pool.errors import (
    CONFLICT,
    CONNECTION_LOST,
    DISK_FULL,
    DUPLICATE_KEY,
    LOGIN_REFUSED,
    NO_DATABASE,
    NO_RIGHTS,
    NO_TABLE,
    READ_ONLY,
    TIMED_OUT,
    TOO_MANY_CONNECTIONS,
    DatabaseLabel,
    ErrorMeaning,
    ErrorPredicates,
    refused,
    unreachable,
)

_CONFLICTS = frozenset({"40001", "40P01", "55P03"})
_FATAL_SEVERITIES = frozenset({"FATAL", "PANIC"})
_READ_ONLY = "25006"
_NO_TLS = "rejected SSL upgrade"
"""How the driver says it."""

_MEANINGS: tuple[tuple[str, ErrorMeaning], ...] = (
    ("28", LOGIN_REFUSED),
    ("3D000", NO_DATABASE),
    ("42501", NO_RIGHTS),
    ("42P01", NO_TABLE),
    ("42703", NO_TABLE),
    ("3F000", ErrorMeaning(StoreUnusable, "{error}; create the schema or set the user's search_path")),
    (_READ_ONLY, READ_ONLY),
    ("25P03", ErrorMeaning(StoreUnavailable, "{error}; try again")),
    ("53100", DISK_FULL),
    ("53300", TOO_MANY_CONNECTIONS),
    ("53", ErrorMeaning(StoreUnavailable, "{place} is short of resources ({error}); see its log")),
    ("57014", TIMED_OUT),
    ("57P", ErrorMeaning(StoreUnavailable, "{place} is stopping or starting ({error}); wait for it")),
    ("23505", DUPLICATE_KEY),
    ("40", CONFLICT),
    ("55P03", ErrorMeaning(StoreUnavailable, "somebody keeps a lock on our tables ({error}); see pg_locks")),
    ("08", CONNECTION_LOST),
    ("58", ErrorMeaning(StoreUnavailable, "{place} has trouble with its system ({error}); see its log")),
)
"""What the codes of errors mean that begin so, in the order in which they are looked through."""

_CLIENT_SIDE: tuple[tuple[type[Exception], type[DuetimeError], str], ...] = (
    (asyncpg.ClientConfigurationError, ConfigError, "the URL for {place} cannot be used: {error}"),
    (asyncpg.InternalClientError, StoreUnavailable, "the connection to {place} broke: {error}; try again"),
    (asyncpg.InterfaceError, StoreError, "{place}: {error}"),
)
"""Looked through in order; the narrower come first."""


def translate(error: BaseException, place: DatabaseLabel) -> BaseException:
    """Return the error to raise instead; what is not the database's comes back as it is."""
    if isinstance(error, asyncpg.PostgresError):
        code = _code(error)
        meanings = (meaning for prefix, meaning in _MEANINGS if code.startswith(prefix))
        meaning = next(meanings, None)
        return refused(error, place, code) if meaning is None else meaning.told(error, place)
    for source, kind, text in _CLIENT_SIDE:
        if isinstance(error, source):
            return kind(text.format(place=place, error=place.say(error)))
    if isinstance(error, ConnectionError) and str(error).endswith(_NO_TLS):
        return StoreUnusable(f"{place} does not speak TLS; set ssl = on in its settings")
    return unreachable(error, place)


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
    if isinstance(error, KeyTaken | ScriptUndone):
        return True
    return isinstance(error, asyncpg.PostgresError) and not is_lost(error) and _code(error) != _READ_ONLY


def _code(error: asyncpg.PostgresError) -> str:
    # Errors that the client makes up itself have none.
    code: str | None = getattr(error, "sqlstate", None)
    return code or ""


ERROR_PREDICATES = ErrorPredicates(
    is_conflict=is_conflict,
    is_lost=is_lost,
    was_never_sent=was_never_sent,
    spares_connection=spares_connection,
    misses_savepoint=lambda error: isinstance(
        error, asyncpg.InvalidSavepointSpecificationError | asyncpg.NoActiveSQLTransactionError
    ),
    misses_table=lambda error: isinstance(error, asyncpg.UndefinedTableError | asyncpg.UndefinedColumnError),
    is_aborted=lambda error: isinstance(error, asyncpg.InFailedSQLTransactionError),
)
