"""A caller's transaction on a `sqlite3.Connection`."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from typing import Final, TypeVar

from duetime.errors import InvalidTransaction, StoreUnavailable
from duetime.model.clock import Clock
from duetime.stores.sql.borrowing import SAVEPOINT, another_database, no_transaction
from duetime.stores.sql.driver import Script
from duetime.stores.sql.sqlite.errors import has_moved_on, misses_table, translate
from duetime.stores.sql.sqlite.filesystem import StrPath
from duetime.stores.sql.sqlite.play import plain_cursor, play_at
from duetime.stores.sql.sqlite.waiting import tries

T = TypeVar("T")

BECOME_WRITER: Final = "PRAGMA incremental_vacuum(1)"
"""Makes a transaction that has done nothing yet, or has only read, the one that writes.

SQLite has no statement for that. This one needs no table and changes nothing, or gives one free page back. Without it our
look at the tables would come first, and SQLite never lets one that has read wait for the writer.
"""
_MILLISECONDS: Final = 1_000


class BorrowedSqlite:
    """Runs scripts on the caller's connection, in the thread of whoever asks: an await would gain nothing."""

    announces = True

    def __init__(self, connection: sqlite3.Connection, *, clock: Clock, path: StrPath | None) -> None:
        self._connection = connection
        self._clock = clock
        self._path = path

    async def run(self, script: Callable[[], Script[T]]) -> T:
        """Run a script inside the transaction; the event loop goes on while others write."""
        with self._errors():
            begun = not self._connection.in_transaction
            with closing(self._become_writer()) as waits:
                for wait in waits:
                    await asyncio.sleep(wait)
            return self._play(script, begun=begun)

    def run_blocking(self, script: Callable[[], Script[T]]) -> T:
        """Run a script inside the transaction."""
        with self._errors():
            begun = not self._connection.in_transaction
            with closing(self._become_writer()) as waits:
                for wait in waits:
                    time.sleep(wait)
            return self._play(script, begun=begun)

    def _become_writer(self) -> Generator[float]:
        """Yield how long to wait before each further try, for as long as the caller's own statements would."""
        cursor = plain_cursor(self._connection)
        statement = BECOME_WRITER if self._connection.in_transaction else _beginning(self._connection)
        (patience,) = cursor.execute("PRAGMA busy_timeout").fetchone()
        cursor.execute("PRAGMA busy_timeout = 0")
        try:
            yield from tries(lambda: cursor.execute(statement), patience=patience / _MILLISECONDS)
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience}")

    def _play(self, script: Callable[[], Script[T]], *, begun: bool) -> T:
        connection = self._connection
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
        return answer

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.ProgrammingError as error:
            # Closed, or made in another thread.
            raise InvalidTransaction(f"tx cannot be used: {error}") from error
        except sqlite3.OperationalError as error:
            if has_moved_on(error):
                raise outrun() from error
            if misses_table(error):
                raise another_database() from error
            raise translate(error, self._path) from error
        except Exception as error:
            translated = translate(error, self._path)
            if translated is error:
                raise
            raise translated from error


def outrun() -> StoreUnavailable:
    """Return the error for a transaction whose view of the file is too old for it to write."""
    return StoreUnavailable(
        "others have written since your transaction first read, so SQLite does not let it write any more; "
        "roll back and try again, and begin it with BEGIN IMMEDIATE"
    )


def _beginning(connection: sqlite3.Connection) -> str:
    """Return how to begin what Python leaves for the first change to begin."""
    if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
        raise no_transaction("it commits every statement by itself: execute('BEGIN') first")
    return "BEGIN IMMEDIATE"
