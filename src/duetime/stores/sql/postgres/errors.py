"""What PostgreSQL's errors mean for the caller."""

from __future__ import annotations

from typing import Final

import asyncpg

from duetime.errors import ConfigError, DuetimeError, StoreError, StoreUnavailable, StoreUnusable
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
    DatabaseErrors,
    ErrorMeaning,
)

_CONFLICTS: Final = frozenset({"40001", "40P01", "55P03"})
_FATAL_SEVERITIES: Final = frozenset({"FATAL", "PANIC"})
_NO_TLS: Final = "rejected SSL upgrade"
"""How the driver says it."""

_MEANINGS: Final[tuple[tuple[str, ErrorMeaning], ...]] = (
    ("28", LOGIN_REFUSED),
    ("3D000", NO_DATABASE),
    ("42501", NO_RIGHTS),
    ("42P01", NO_TABLE),
    ("42703", NO_TABLE),
    ("3F000", ErrorMeaning(StoreUnusable, "{error}; create the schema or set the user's search_path")),
    ("25006", READ_ONLY),
    ("25P03", ErrorMeaning(StoreUnavailable, "{error}; try again")),
    ("53100", DISK_FULL),
    ("53300", TOO_MANY_CONNECTIONS),
    ("53", ErrorMeaning(StoreUnavailable, "{place} is short of resources ({error}); see its log")),
    ("57014", TIMED_OUT),
    ("57P", ErrorMeaning(StoreUnavailable, "{place} is stopping or starting ({error}); wait for it")),
    ("23505", DUPLICATE_KEY),
    ("40", CONFLICT),
    (
        "55P03",
        ErrorMeaning(StoreUnavailable, "another session keeps a lock on our tables ({error}); see pg_locks"),
    ),
    ("08", CONNECTION_LOST),
    ("58", ErrorMeaning(StoreUnavailable, "{place} has trouble with its system ({error}); see its log")),
)
"""What error codes mean that begin with this text; the first that fits counts."""

_CLIENT_SIDE: Final[tuple[tuple[type[Exception], type[DuetimeError], str], ...]] = (
    (asyncpg.ClientConfigurationError, ConfigError, "the URL for {place} cannot be used: {error}"),
    (asyncpg.InternalClientError, StoreUnavailable, "the connection to {place} broke: {error}; try again"),
    (asyncpg.InterfaceError, StoreError, "{place}: {error}"),
)
"""What errors of the driver itself mean; the narrower come first."""


class PostgresErrors(DatabaseErrors):
    """What the errors of asyncpg mean."""

    def translate(self, error: BaseException) -> BaseException:
        """Return the error to raise instead; an error of something else comes back as it is."""
        for source, kind, text in _CLIENT_SIDE:
            if isinstance(error, source):
                return kind(text.format(place=self.place, error=self.place.say(error)))
        if isinstance(error, ConnectionError) and str(error).endswith(_NO_TLS):
            return StoreUnusable(f"{self.place} does not speak TLS; set ssl = on in its settings")
        return super().translate(error)

    def code(self, error: BaseException) -> str | None:
        """Return the SQLSTATE; the driver's own errors have none."""
        return (getattr(error, "sqlstate", None) or "") if isinstance(error, asyncpg.PostgresError) else None

    def meaning(self, error: BaseException) -> ErrorMeaning | None:
        """Return what the code of an error means."""
        code = self.code(error) or ""
        return next((meaning for prefix, meaning in _MEANINGS if code.startswith(prefix)), None)

    def is_conflict(self, error: BaseException) -> bool:
        """Whether the whole script can be run again, because its transaction was undone."""
        if isinstance(error, asyncpg.InvalidCachedStatementError | asyncpg.OutdatedSchemaCacheError):
            # The tables were migrated under us; the driver has dropped what it knew of them.
            return True
        return self.code(error) in _CONFLICTS

    def is_lost(self, error: BaseException) -> bool:
        """Whether the connection is gone."""
        if isinstance(error, asyncpg.PostgresError):
            return (self.code(error) or "").startswith(
                ("08", "57P")
            ) or error.severity_en in _FATAL_SEVERITIES
        return isinstance(error, asyncpg.InternalClientError) or super().is_lost(error)

    def was_never_sent(self, error: BaseException) -> bool:
        """Whether the driver found the connection unusable before it sent anything."""
        if isinstance(error, asyncpg.InternalClientError):
            # The server said goodbye and the end of the stream has not been read yet; checked before each sending.
            return str(error).startswith("cannot switch to state")
        return isinstance(error, asyncpg.InterfaceError) and "connection is closed" in str(error)

    def misses_savepoint(self, error: BaseException) -> bool:
        """Whether a savepoint was not there any more, because its transaction had been ended."""
        return isinstance(
            error, asyncpg.InvalidSavepointSpecificationError | asyncpg.NoActiveSQLTransactionError
        )

    def is_aborted(self, error: BaseException) -> bool:
        """Whether a statement of the transaction had failed before, so that it can only be rolled back."""
        return isinstance(error, asyncpg.InFailedSQLTransactionError)
