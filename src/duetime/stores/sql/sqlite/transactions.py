"""Transactions on a SQLite file: a caller's own, and those that handlers work in."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, NoReturn, TypeVar

from duetime.errors import InvalidTransaction, StoreUnavailable, Unsupported
from duetime.failpoints import InjectedFault, failpoint
from duetime.model.ids import new_token
from duetime.model.time import SECOND, Clock, Micros
from duetime.stores.sql.driver import ScriptMaker
from duetime.stores.sql.sqlite.connection import become_writer, pause_for_writers, plain_cursor, run_script
from duetime.stores.sql.sqlite.database import Database
from duetime.stores.sql.sqlite.errors import (
    StrPath,
    has_moved_on,
    misses_table,
    primary_code,
    translate,
    translated,
)
from duetime.stores.sql.sqlite.lock_holders import lent
from duetime.stores.sql.transactions.caller import ANOTHER_DATABASE, SAVEPOINT, no_transaction, not_alchemy

T = TypeVar("T")

BECOME_WRITER: Final = "PRAGMA incremental_vacuum(1)"
"""Makes a transaction that has done nothing yet, or has only read, the one that writes.

SQLite has no statement for that. This one needs no table and changes nothing, or gives one free page back. Without it our
look at the tables would come first, and SQLite never lets one that has read wait for the writer.
"""
_MILLISECONDS: Final = 1_000
_ENDING_ERRORS: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
_LONGEST_WAIT: Final = 60.0
"""How long others may keep us from writing, in seconds: far longer than for a verb, which is tried again."""


class SqliteCallerTransaction:
    """Runs scripts on the caller's connection, in the thread of the caller: an await would gain nothing."""

    announces = True

    def __init__(self, connection: sqlite3.Connection, *, clock: Clock, path: StrPath | None) -> None:
        self._connection = connection
        self._clock = clock
        self._path = path
        self._begun = False
        """Whether we have begun the transaction that the caller's first change would have."""

    async def run(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction; the event loop goes on while others write."""
        with self._errors():
            for pause in self._becoming_writer():
                await asyncio.sleep(pause)
            return self._play(script)

    def run_blocking(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction."""
        with self._errors():
            for pause in self._becoming_writer():
                time.sleep(pause)
            return self._play(script)

    def lend(self, *, timeout: Micros) -> NoReturn:
        """Refuse: the store has connections of that kind."""
        del timeout
        raise not_alchemy(self._connection)

    def _becoming_writer(self) -> Generator[float]:
        """Yield how long to wait before each further try, for as long as the caller's own statements would."""
        connection = self._connection
        self._begun = not connection.in_transaction
        statement = _beginning(connection) if self._begun else BECOME_WRITER
        cursor, began = plain_cursor(connection), time.monotonic()
        (milliseconds,) = cursor.execute("PRAGMA busy_timeout").fetchone()
        while True:
            cursor.execute("PRAGMA busy_timeout = 0")
            try:
                cursor.execute(statement)
                return
            except sqlite3.OperationalError as error:
                pause = pause_for_writers(error, began=began, timeout=milliseconds / _MILLISECONDS)
            finally:
                cursor.execute(f"PRAGMA busy_timeout = {milliseconds}")
            yield pause

    def _play(self, script: ScriptMaker[T]) -> T:
        connection = self._connection
        connection.execute(f"SAVEPOINT {SAVEPOINT}")
        try:
            answer = run_script(connection, script, self._clock)
        except BaseException:
            # Some errors, such as a full disk, end the whole transaction.
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK" if self._begun else f"ROLLBACK TO {SAVEPOINT}")
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
        except (sqlite3.Error, InjectedFault) as error:
            if has_moved_on(error):
                raise snapshot_too_old() from error
            if misses_table(error):
                raise InvalidTransaction(ANOTHER_DATABASE) from error
            raise translate(error, self._path) from error


def snapshot_too_old() -> StoreUnavailable:
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


class SqliteHandlerTransaction:
    """Begins, waits and commits in threads, so that the event loop goes on.

    An alarm rolls it back when its time is up, also while the handler blocks the event loop or never returns: no one
    else can write meanwhile.
    """

    blocking = True

    def __init__(self, database: Database, *, clock: Clock, timeout: Micros) -> None:
        self.expired = False
        self._database = database
        self._clock = clock
        self._mark = f"duetime_{new_token()}"
        self._alarm = threading.Timer(timeout / SECOND, self._expire)
        self._alarm.daemon = True
        self._ending = threading.Lock()
        self._in_time = False
        self._has_lock = False
        self._loop: asyncio.AbstractEventLoop
        self._connection: sqlite3.Connection | None = None

    async def begin(self) -> sqlite3.Connection:
        """Wait for our turn and begin."""
        if self._database.path is None:
            raise Unsupported("a database in memory has no second connection to lend; use a file")
        self._loop = asyncio.get_running_loop()
        await self._database.handler_lock.acquire()
        self._has_lock = True
        try:
            return await self._do(self._begin)
        except BaseException:
            await self._give_back(self._close)
            raise

    async def is_whole(self) -> bool:
        """Let go of the savepoint that stands at the beginning: it is gone if the transaction has been ended."""
        self._alarm.cancel()
        with self._ending:
            self._in_time = not self.expired
            return self.expired or self._tried(f"RELEASE {self._mark}")

    async def run(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction."""
        with translated(self._database.path):
            return run_script(self._open(), script, self._clock)

    async def commit(self) -> None:
        """Commit and take the connection back."""
        await self._give_back(self._commit)

    async def rollback(self, cause: BaseException | None = None) -> bool:
        """Undo everything and take the connection back."""
        self._alarm.cancel()
        return self._connection is None or await self._give_back(lambda: self._rollback(cause))

    async def _give_back(self, last: Callable[[], T]) -> T:
        """Do the last thing on the connection and let the next handler begin."""
        try:
            return await self._do(last)
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._has_lock:
            self._has_lock = False
            self._database.handler_lock.release()

    async def _do(self, work: Callable[[], T]) -> T:
        """Work in the thread for lending, to the end also when cancelled: no two may use the connection at once."""
        loop = asyncio.get_running_loop()
        working = loop.run_in_executor(self._database.handler_thread, work)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.wait({working})
            raise

    def _begin(self) -> sqlite3.Connection:
        with translated(self._database.path):
            self._connection = connection = self._database.connect_writer()
            become_writer(connection, timeout=_LONGEST_WAIT)
            lent.add(self)
            connection.execute(f"SAVEPOINT {self._mark}")
        self._alarm.start()
        return connection

    def _commit(self) -> None:
        try:
            with translated(self._database.path):
                failpoint("before:transaction")
                self._open().execute("COMMIT")
                failpoint("after:transaction")
                self._database.look()
        finally:
            self._close()

    def _rollback(self, cause: BaseException | None) -> bool:
        with self._ending:
            whole = self.expired or self._tried(f"ROLLBACK TO {self._mark}") or _ends_transactions(cause)
        self._close()
        return whole

    def _close(self) -> None:
        """Close the connection, which rolls back what is not committed."""
        self._alarm.cancel()
        with self._ending:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        lent.discard(self)

    def _expire(self) -> None:
        """Roll back in the alarm's thread; from then on the connection only reads, so that nothing slips through."""
        with self._ending:
            if self._connection is None or self._in_time:
                return
            self.expired = True
            self._connection.interrupt()
            self._tried("PRAGMA query_only = 1")
            self._tried("ROLLBACK")
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._leave)

    def _tried(self, statement: str) -> bool:
        try:
            self._open().execute(statement)
        except sqlite3.Error:
            return False
        return True

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise sqlite3.ProgrammingError("the transaction has ended")
        return self._connection


def _ends_transactions(error: BaseException | None) -> bool:
    """Whether SQLite itself rolls back after such an error."""
    return isinstance(error, sqlite3.Error) and primary_code(error) in _ENDING_ERRORS
