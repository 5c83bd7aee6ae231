"""A handler's transaction on a SQLite file: a connection of its own, while it is the only writer."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from duetime.errors import Unsupported
from duetime.failpoints import failpoint
from duetime.model.clock import Clock
from duetime.model.ids import new_token
from duetime.model.instants import SECOND, Micros
from duetime.stores.sql.driver import Script
from duetime.stores.sql.sqlite.database import Database
from duetime.stores.sql.sqlite.errors import primary_code, translate
from duetime.stores.sql.sqlite.play import play_at
from duetime.stores.sql.sqlite.waiting import become_writer

T = TypeVar("T")

_FATAL: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
_PATIENCE: Final = 60.0
"""How long other processes may keep us from writing, in seconds: far longer than for a verb, which is tried again."""


class LentSqlite:
    """Begins, waits and commits in threads, so that the event loop goes on.

    An alarm rolls it back when its time is up, also while the handler blocks the event loop or never returns: nobody
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
        self._has_turn = False
        self._loop: asyncio.AbstractEventLoop
        self._connection: sqlite3.Connection | None = None

    async def begin(self) -> sqlite3.Connection:
        """Wait for our turn and begin."""
        if self._database.path is None:
            raise Unsupported("a database in memory has no second connection to lend; use a file")
        self._loop = asyncio.get_running_loop()
        await self._database.turn.acquire()
        self._has_turn = True
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

    async def run(self, script: Callable[[], Script[T]]) -> T:
        """Run a script inside the transaction."""
        with self._errors():
            return play_at(self._open(), script(), self._clock.now())

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
        if self._has_turn:
            self._has_turn = False
            self._database.turn.release()

    async def _do(self, work: Callable[[], T]) -> T:
        """Work in the thread for lending, to the end also when cancelled: no two may use the connection at once."""
        loop = asyncio.get_running_loop()
        working = loop.run_in_executor(self._database.lending, work)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.wait({working})
            raise

    def _begin(self) -> sqlite3.Connection:
        with self._errors():
            self._connection = connection = self._database.connect_writer()
            become_writer(connection, patience=_PATIENCE)
            connection.execute(f"SAVEPOINT {self._mark}")
        self._alarm.start()
        return connection

    def _commit(self) -> None:
        try:
            with self._errors():
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

    def _expire(self) -> None:
        """Roll back in the alarm's thread; from then on the connection only reads, so that nothing slips through."""
        with self._ending:
            if self._connection is None or self._in_time:
                return
            self.expired = True
            self._connection.interrupt()
            self._tried("PRAGMA query_only = 1")
            self._tried("ROLLBACK")
        with contextlib.suppress(RuntimeError):
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

    @contextlib.contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except Exception as error:
            translated = translate(error, self._database.path)
            if translated is error:
                raise
            raise translated from error


def _ends_transactions(error: BaseException | None) -> bool:
    """Whether SQLite itself rolls back after such an error."""
    return isinstance(error, sqlite3.Error) and primary_code(error) in _FATAL
