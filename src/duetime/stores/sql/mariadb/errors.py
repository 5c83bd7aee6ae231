"""What MariaDB's errors mean for the caller."""

from __future__ import annotations

from typing import Final

import asyncmy

from duetime.stores.sql.pool.errors import (
    CONFLICT,
    CONNECTION_LOST,
    DISK_FULL,
    DUPLICATE_KEY,
    LOGIN_REFUSED,
    NEVER_SENT,
    NO_DATABASE,
    NO_RIGHTS,
    NO_SAVEPOINT,
    NO_TABLE,
    NO_TLS,
    READ_ONLY,
    STATEMENT_LOG,
    TIMED_OUT,
    TOO_LARGE,
    TOO_MANY_CONNECTIONS,
    DatabaseErrors,
    ErrorMeaning,
)

_CODES: Final = {
    LOGIN_REFUSED: "1044 1045 1130 1698",
    NO_TLS: "2026 3159",
    NO_DATABASE: "1049",
    NO_RIGHTS: "1142 1143 1227",
    NO_TABLE: "1054 1146",
    STATEMENT_LOG: "1665",
    READ_ONLY: "1290 1792 1836",
    DISK_FULL: "1021 1114",
    TOO_MANY_CONNECTIONS: "1040 1203 1226",
    TIMED_OUT: "1969",
    CONNECTION_LOST: "1053 1158 1159 1160 1161 1927 2003 2013 2014",
    NEVER_SENT: "0 2006",
    TOO_LARGE: "1153",
    CONFLICT: "1020 1205 1213",
    DUPLICATE_KEY: "1062",
    NO_SAVEPOINT: "1305",
}
_MEANINGS: Final = {code: meaning for meaning, codes in _CODES.items() for code in codes.split()}


class MariaDbErrors(DatabaseErrors):
    """What the errors of asyncmy mean, whose first argument is a code."""

    def translate(self, error: BaseException) -> BaseException:
        """Return the error to raise instead; an error of something else comes back as it is."""
        # What the network has said says more than what the driver makes of it.
        network = self.code(error) is not None and isinstance(error.__cause__, OSError)
        return super().translate(error.__cause__ if network and error.__cause__ else error)

    def code(self, error: BaseException) -> str | None:
        """Return the code of an error; None if it is not the database's."""
        return str(error.args[0]) if isinstance(error, asyncmy.MySQLError) and error.args else None

    def meaning(self, error: BaseException) -> ErrorMeaning | None:
        """Return what the code of an error means."""
        return _MEANINGS.get(self.code(error) or "")

    def is_conflict(self, error: BaseException) -> bool:
        """Whether the whole script can be run again, because its transaction was undone."""
        return self.meaning(error) in (CONFLICT, DUPLICATE_KEY)

    def is_lost(self, error: BaseException) -> bool:
        """Whether the connection is gone."""
        return self.meaning(error) in (CONNECTION_LOST, NEVER_SENT) or super().is_lost(error)

    def was_never_sent(self, error: BaseException) -> bool:
        """Whether the driver found the connection unusable before it sent anything."""
        return self.meaning(error) is NEVER_SENT

    def misses_savepoint(self, error: BaseException) -> bool:
        """Whether a savepoint was not there any more, because its transaction had been ended."""
        return self.meaning(error) is NO_SAVEPOINT
