"""What MariaDB's errors mean for the caller."""

from __future__ import annotations

from typing import ClassVar, Final

import asyncmy

from duetime.stores.sql.pool import errors
from duetime.stores.sql.pool.errors import DatabaseErrors

_CODES: Final = {
    errors.LOGIN_REFUSED: "1044 1045 1130 1698",
    errors.NO_TLS: "2026 3159",
    errors.NO_DATABASE: "1049",
    errors.NO_RIGHTS: "1142 1143 1227",
    errors.NO_TABLE: "1054 1146",
    errors.STATEMENT_LOG: "1665",
    errors.READ_ONLY: "1290 1792 1836",
    errors.DISK_FULL: "1021 1114",
    errors.TOO_MANY_CONNECTIONS: "1040 1203 1226",
    errors.TIMED_OUT: "1969",
    errors.CONNECTION_LOST: "1053 1158 1159 1160 1161 1927 2003 2013 2014",
    errors.NEVER_SENT: "0 2006",
    errors.TOO_LARGE: "1153",
    errors.CONFLICT: "1020 1205 1213",
    errors.DUPLICATE_KEY: "1062",
    errors.NO_SAVEPOINT: "1305",
}


class MariaDbErrors(DatabaseErrors):
    """What the errors of asyncmy mean, whose first argument is a code."""

    meanings: ClassVar = {code: meaning for meaning, codes in _CODES.items() for code in codes.split()}
    conflicts = (errors.CONFLICT, errors.DUPLICATE_KEY)

    def translate(self, error: BaseException) -> BaseException:
        """Return the error to raise instead; what the network has said says more than what the driver makes of it."""
        network = self.code(error) is not None and isinstance(error.__cause__, OSError)
        return super().translate(error.__cause__ if network and error.__cause__ else error)

    def code(self, error: BaseException) -> str | None:
        """Return the code of an error; None if it is not the database's."""
        return str(error.args[0]) if isinstance(error, asyncmy.MySQLError) and error.args else None
