"""What PostgreSQL's errors mean for the caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import asyncpg

from duetime.errors import ConfigError, StoreError, StoreUnusable
from duetime.stores.sql.pool import errors
from duetime.stores.sql.pool.errors import NETWORK_ERRORS, DatabaseErrors, ErrorMeaning, unavailable, unusable

_FATAL_SEVERITIES: Final = frozenset({"FATAL", "PANIC"})
_NO_TLS: Final = "rejected SSL upgrade"
"""How the driver says it."""
_LOCKED: Final = unavailable("another session keeps a lock on our tables ({error}); see pg_locks")
_MEANINGS: Final[Mapping[str, ErrorMeaning]] = {
    "28": errors.LOGIN_REFUSED,
    "3D000": errors.NO_DATABASE,
    "42501": errors.NO_RIGHTS,
    "42P01": errors.NO_TABLE,
    "42703": errors.NO_TABLE,
    "3F000": unusable("{error}; create the schema or set the user's search_path"),
    "25006": errors.READ_ONLY,
    "25P01": errors.NO_SAVEPOINT,
    "3B001": errors.NO_SAVEPOINT,
    "25P02": errors.ABORTED,
    "25P03": unavailable("{error}; try again"),
    "53100": errors.DISK_FULL,
    "53300": errors.TOO_MANY_CONNECTIONS,
    "53": unavailable("{place} is short of resources ({error}); see its log"),
    "57014": errors.TIMED_OUT,
    "57P": errors.STOPPING,
    "23505": errors.DUPLICATE_KEY,
    "40": errors.CONFLICT,
    "55P03": _LOCKED,
    "08": errors.CONNECTION_LOST,
    "58": unavailable("{place} has trouble with its system ({error}); see its log"),
}
_CLIENT_SIDE: Final[Mapping[type[Exception], ErrorMeaning]] = {
    asyncpg.ClientConfigurationError: ErrorMeaning(ConfigError, "the URL of {place} cannot be used: {error}"),
    asyncpg.InternalClientError: unavailable("the connection to {place} broke: {error}; try again"),
    asyncpg.InterfaceError: ErrorMeaning(StoreError, "{place}: {error}"),
}


class PostgresErrors(DatabaseErrors):
    """What the errors of asyncpg mean."""

    meanings = _MEANINGS
    by_type: ClassVar = {**_CLIENT_SIDE, **NETWORK_ERRORS}
    conflicts = (errors.CONFLICT, _LOCKED)

    def translate(self, error: BaseException) -> BaseException:
        """Return the error to raise instead; an error of something else comes back as it is."""
        if isinstance(error, ConnectionError) and str(error).endswith(_NO_TLS):
            return StoreUnusable(f"{self.place} does not speak TLS; set ssl = on in its settings")
        return super().translate(error)

    def code(self, error: BaseException) -> str | None:
        """Return the SQLSTATE; the driver's own errors have none."""
        return (getattr(error, "sqlstate", None) or "") if isinstance(error, asyncpg.PostgresError) else None

    def is_conflict(self, error: BaseException) -> bool:
        """Whether the whole script can be run again, also because the tables were migrated and the driver knows by now."""
        migrated = (asyncpg.InvalidCachedStatementError, asyncpg.OutdatedSchemaCacheError)
        return isinstance(error, migrated) or super().is_conflict(error)

    def is_lost(self, error: BaseException) -> bool:
        """Whether the connection is gone."""
        if isinstance(error, asyncpg.PostgresError) and error.severity_en in _FATAL_SEVERITIES:
            return True
        return isinstance(error, asyncpg.InternalClientError) or super().is_lost(error)

    def was_never_sent(self, error: BaseException) -> bool:
        """Whether the driver found the connection unusable before it sent anything."""
        if isinstance(error, asyncpg.InternalClientError):
            # The server said goodbye and the end of the stream has not been read yet; checked before each sending.
            return str(error).startswith("cannot switch to state")
        return isinstance(error, asyncpg.InterfaceError) and "connection is closed" in str(error)
