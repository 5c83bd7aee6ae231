"""A caller's transaction on a `sqlite3.Connection`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from duetime.errors import InvalidTransaction
from duetime.model.clock import Clock
from duetime.stores.sql.borrowing import SAVEPOINT, no_transaction
from duetime.stores.sql.driver import Script
from duetime.stores.sql.sqlite.errors import translate
from duetime.stores.sql.sqlite.play import play_at

T = TypeVar("T")


class BorrowedSqlite:
    """Runs scripts on the caller's connection, in the thread of whoever asks: an await would gain nothing."""

    database = None
    """Looking at the file again costs less than to remember it."""

    def __init__(self, connection: sqlite3.Connection, *, clock: Clock, path: Path | None) -> None:
        self._connection = connection
        self._clock = clock
        self._path = path

    async def run(self, script: Callable[[], Script[T]]) -> T:
        """Run a script inside the transaction."""
        return self.run_blocking(script)

    def run_blocking(self, script: Callable[[], Script[T]]) -> T:
        """Run a script inside the transaction, which Python may have left for its first change to begin."""
        connection = self._connection
        try:
            begun = _begin(connection)
            connection.execute(f"SAVEPOINT {SAVEPOINT}")
            try:
                answer = play_at(connection, script(), self._clock.now())
            except BaseException:
                # Some errors, such as a full disk, end the whole transaction.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK" if begun else f"ROLLBACK TO {SAVEPOINT}")
                    connection.execute(f"RELEASE {SAVEPOINT}")
                raise
            connection.execute(f"RELEASE {SAVEPOINT}")
        except sqlite3.ProgrammingError as error:
            # Closed, or made in another thread.
            raise InvalidTransaction(f"tx cannot be used: {error}") from error
        except Exception as error:
            translated = translate(error, self._path)
            if translated is error:
                raise
            raise translated from error
        return answer


def _begin(connection: sqlite3.Connection) -> bool:
    """Begin as Python would before the first change, and return whether that was left to do."""
    if connection.in_transaction:
        return False
    if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
        raise no_transaction("it commits every statement by itself: execute('BEGIN') first")
    connection.execute(f"BEGIN {connection.isolation_level}")
    return True
