"""What PostgreSQL's errors mean for the caller."""

from __future__ import annotations

import asyncpg

from duetime.errors import (
    ConfigError,
    DuetimeError,
    KeyTaken,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from duetime.stores.sql.driver import TakenBack
from duetime.stores.sql.pooled import meanings as mean
from duetime.stores.sql.pooled.connection import Judge
from duetime.stores.sql.pooled.errors import Place, unreachable

_CONFLICTS = frozenset({"40001", "40P01", "55P03"})
_FATAL_SEVERITIES = frozenset({"FATAL", "PANIC"})
_READ_ONLY = "25006"
_NO_TLS = "rejected SSL upgrade"
"""How the driver says it."""

_MEANINGS: tuple[tuple[str, mean.Meaning], ...] = (
    ("28", mean.LOGIN),
    ("3D000", mean.NO_DATABASE),
    ("42501", mean.NO_RIGHTS),
    ("42P01", mean.NO_TABLE),
    ("42703", mean.NO_TABLE),
    ("3F000", mean.Meaning(StoreUnusable, "{error}; create the schema or set the user's search_path")),
    (_READ_ONLY, mean.READ_ONLY),
    ("25P03", mean.Meaning(StoreUnavailable, "{error}; try again")),
    ("53100", mean.DISK_FULL),
    ("53300", mean.CROWDED),
    ("53", mean.Meaning(StoreUnavailable, "{place} is short of resources ({error}); see its log")),
    ("57014", mean.SLOW),
    ("57P", mean.Meaning(StoreUnavailable, "{place} is stopping or starting ({error}); wait for it")),
    ("23505", mean.TAKEN),
    ("40", mean.CONFLICT),
    ("55P03", mean.Meaning(StoreUnavailable, "somebody keeps a lock on our tables ({error}); see pg_locks")),
    ("08", mean.LOST),
    ("58", mean.Meaning(StoreUnavailable, "{place} has trouble with its system ({error}); see its log")),
)
"""What the codes of errors mean that begin so, in the order in which they are looked through."""

_CLIENT_SIDE: tuple[tuple[type[Exception], type[DuetimeError], str], ...] = (
    (asyncpg.ClientConfigurationError, ConfigError, "the URL for {place} cannot be used: {error}"),
    (asyncpg.InternalClientError, StoreUnavailable, "the connection to {place} broke: {error}; try again"),
    (asyncpg.InterfaceError, StoreError, "{place}: {error}"),
)
"""Looked through in order; the narrower come first."""


def translate(error: BaseException, place: Place) -> BaseException:
    """Return the error to raise instead; what is not the database's comes back as it is."""
    if isinstance(error, asyncpg.PostgresError):
        code = _code(error)
        meanings = (meaning for prefix, meaning in _MEANINGS if code.startswith(prefix))
        meaning = next(meanings, None)
        return mean.refused(error, place, code) if meaning is None else meaning.told(error, place)
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
    if isinstance(error, KeyTaken | TakenBack):
        return True
    return isinstance(error, asyncpg.PostgresError) and not is_lost(error) and _code(error) != _READ_ONLY


def _code(error: asyncpg.PostgresError) -> str:
    # Errors that the client makes up itself have none.
    code: str | None = getattr(error, "sqlstate", None)
    return code or ""


JUDGE = Judge(
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
