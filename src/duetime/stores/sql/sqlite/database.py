"""A SQLite database as one process has it open: a writing thread and a reading one."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal, TypeAlias

from duetime.errors import NotOpen, StoreUnusable
from duetime.stores.sql.sqlite.checkpoint import SETTINGS, Checkpointer
from duetime.stores.sql.sqlite.commit_watch import NewJobSignals
from duetime.stores.sql.sqlite.connection import waits_for_writers
from duetime.stores.sql.sqlite.connection_thread import ConnectionThread
from duetime.stores.sql.sqlite.filesystem import OpenFiles, StrPath, prepare

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

_CACHED_STATEMENTS: Final = 256
_LONGEST_WAIT: Final = 10.0
_FIRST_READ: Final = "PRAGMA schema_version"
"""Reads, from which moment on the log stays until the connection is closed."""
OLDEST_VERSION: Final = (3, 35, 0)
"""The first version that returns what an UPDATE changed."""


def require_version() -> None:
    """Raise `StoreUnusable` where SQLite is too old."""
    if sqlite3.sqlite_version_info < OLDEST_VERSION:
        raise StoreUnusable(
            f"SQLite {sqlite3.sqlite_version} is too old; use a Python that has SQLite 3.35 or later"
        )


class Database:
    """Opens and closes the threads; without a path, a database in memory that ends with them.

    Only `checkpoints` copies the log into the file, and SQLite itself when the last connection closes.
    """

    def __init__(self, path: StrPath | None, *, synchronous: Synchronous = "FULL", make: bool = True) -> None:
        self.path = path
        self._make = make
        self.signals = None if path is None else NewJobSignals(path)
        """How other processes are told of new jobs; a database in memory has no others."""
        self._synchronous = synchronous
        self._files: OpenFiles | None = None
        self._checkpoints: Checkpointer | None = None
        self._writer: ConnectionThread | None = None
        self._reader: ConnectionThread | None = None
        self.handler_lock = asyncio.Lock()
        """Held by the one handler of this process whose transaction is open; first come, first served."""
        self._handler_thread: ThreadPoolExecutor | None = None

    @property
    def writer(self) -> ConnectionThread:
        """The thread that writes."""
        if self._writer is None:
            raise _not_open()
        return self._writer

    @property
    def reader(self) -> ConnectionThread:
        """The thread that reads; the writing one itself where the database is in memory."""
        return self._reader or self.writer

    @property
    def checkpoints(self) -> Checkpointer:
        """What copies the log into the file."""
        if self._checkpoints is None:
            raise _not_open()
        return self._checkpoints

    @property
    def handler_thread(self) -> ThreadPoolExecutor:
        """The thread that begins and ends the transactions of handlers; there is none before the first."""
        if self._handler_thread is None:
            self._handler_thread = ThreadPoolExecutor(1, "duetime-sqlite-lend")
        return self._handler_thread

    async def open(self) -> None:
        """Start the threads and see that the file can be used."""
        if self._writer is not None:
            return
        self._writer = ConnectionThread(
            self._connect_first, name="duetime-sqlite-write", look=self.look_at_log
        )
        self._checkpoints = Checkpointer(self.connect_writer, on_writer=self._writer.later)
        try:
            await self._writer.start()
            if self.path is not None:
                self._reader = ConnectionThread(
                    self._connect_reader, name="duetime-sqlite-read", look=self.look
                )
                await self._reader.start()
        except BaseException:
            await self.close()
            raise

    def look(self) -> int:
        """Return the size of the log; raise `StoreLost` where the open file is not the one at the path any more."""
        return 0 if self._files is None else self._files.look()

    def look_at_log(self) -> None:
        """Look, and have the log copied if it has grown."""
        if self._files is not None and self._checkpoints is not None:
            self._checkpoints.notice(self._files.look())

    async def sort_in_memory(self) -> None:
        """Have statements keep what they set aside where it takes the least, now that no migration sorts whole tables.

        It is a few rows at a time. A file for them would be a cache of its own each time, of a tenth of a megabyte.
        """
        for thread in {self.writer, self.reader}:
            await thread.do(lambda connection: connection.execute("PRAGMA temp_store = MEMORY"))

    async def close(self) -> None:
        """Finish what was asked for and end the threads."""
        handler_thread, self._handler_thread = self._handler_thread, None
        if handler_thread is not None:
            handler_thread.shutdown(wait=False)
        threads, self._writer, self._reader = (self._writer, self._reader), None, None
        # From the last to the first, and each also if the wait for one before it is cancelled.
        async with contextlib.AsyncExitStack() as ends:
            if self._checkpoints is not None:
                ends.push_async_callback(self._checkpoints.ended)
            for thread in threads:
                if thread is not None:
                    ends.push_async_callback(thread.close)

    def _connect_first(self) -> sqlite3.Connection:
        """Return the connection that makes the file, if it may be made."""
        if self.path is None:
            return self.connect_writer()
        prepare(self.path, make=self._make)
        self._files = OpenFiles(self.path)
        connection = self.connect_writer()
        self._files.note_log()
        return connection

    def connect_writer(self) -> sqlite3.Connection:
        """Return a connection that can write."""
        with contextlib.ExitStack() as undo:
            connection = self._connect()
            undo.callback(connection.close)
            if self.path is not None:
                _execute(connection, "PRAGMA journal_mode = WAL")
                _execute(connection, _FIRST_READ)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            undo.pop_all()
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        connection = self._connect()
        _execute(connection, _FIRST_READ)
        connection.execute("PRAGMA query_only = 1")
        return connection

    def _connect(self) -> sqlite3.Connection:
        if self._files is None and self.path is not None:
            raise _not_open()
        # Before, so that no file is made where one was deleted; after, so that it is the file we know.
        self.look()
        connection = sqlite3.connect(
            ":memory:" if self._files is None else self._files.database,
            # We wait in our own way: see `waits_for_writers`.
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_CACHED_STATEMENTS,
        )
        with contextlib.ExitStack() as undo:
            undo.callback(connection.close)
            self.look()
            for setting in SETTINGS:
                connection.execute(setting)
            undo.pop_all()
        return connection


def _not_open() -> NotOpen:
    return NotOpen("the store is not open; use it inside `async with scheduler`")


def _execute(connection: sqlite3.Connection, statement: str) -> None:
    """Execute a statement, and try again while others are in the way, as when many processes open a new file at once."""
    for wait in waits_for_writers(lambda: connection.execute(statement).fetchall(), timeout=_LONGEST_WAIT):
        time.sleep(wait)
