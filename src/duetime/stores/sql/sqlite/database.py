"""A SQLite database as one process has it open: its files, a writing thread and a reading one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from duetime.errors import NotOpen, StoreLost, StoreUnusable
from duetime.stores.base import Hint
from duetime.stores.base.local_hints import HintSubscribers
from duetime.stores.sql.driver import NOT_OPEN
from duetime.stores.sql.sqlite.checkpoint import SETTINGS, Checkpointer
from duetime.stores.sql.sqlite.checks import prepare
from duetime.stores.sql.sqlite.commit_watch import log_of
from duetime.stores.sql.sqlite.connection import ConnectionThread, wait_to_write
from duetime.stores.sql.sqlite.errors import StrPath

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

LOG_LOOKS: Final = 0.002
"""Seconds from one look at the log to the next."""
_CACHED_STATEMENTS: Final = 256
_LONGEST_WAIT: Final = 10.0
_FIRST_READ: Final = "PRAGMA schema_version"
"""Reads, from which moment on the log stays until the connection is closed."""
OLDEST_VERSION: Final = (3, 35, 0)
"""The first version that returns what an UPDATE changed."""


class Database:
    """Opens and closes the threads; without a path, a database in memory that ends with them.

    Only `checkpoints` copies the log into the file, and SQLite itself when the last connection closes.
    """

    def __init__(self, path: StrPath | None, *, synchronous: Synchronous = "FULL", make: bool = True) -> None:
        self.path = path
        self._make = make
        self._synchronous = synchronous
        self._files: OpenFiles | None = None
        serve = partial(ConnectionThread, path=path, tell=self.tell)
        self.writer = serve(self._connect_first, name="duetime-sqlite-write", look=self.look_at_log)
        self.reader = self.writer
        """The thread that reads; the writing one itself where the database is in memory."""
        if path is not None:
            self.reader = serve(self._connect_reader, name="duetime-sqlite-read", look=self.look)
        self.checkpoints = Checkpointer(self.connect_writer, on_writer=self.writer.later)
        self.subscribers = HintSubscribers()
        self.touches = 0
        """How often this process has touched the log."""
        self.handler_lock = asyncio.Lock()
        """Held by the one handler of this process whose transaction is open; first come, first served."""
        self.handler_thread = ThreadPoolExecutor(1, "duetime-sqlite-lend")
        """Begins and ends the transactions of handlers."""

    async def open(self) -> None:
        """Start the threads and see that the file can be used."""
        if sqlite3.sqlite_version_info < OLDEST_VERSION:
            raise StoreUnusable(
                f"SQLite {sqlite3.sqlite_version} is too old; use a Python that has SQLite 3.35 or later"
            )
        try:
            await self.writer.start()
            await self.reader.start()
        except BaseException:
            await self.close()
            raise

    def look(self) -> int:
        """Return the size of the log; raise `StoreLost` where the open file is not the one at the path any more."""
        return 0 if self._files is None else self._files.look()

    def look_at_log(self) -> None:
        """Look, and have the log copied if it has grown."""
        if self._files is not None:
            self.checkpoints.notice(self._files.look())

    def tell(self, hint: Hint) -> None:
        """Tell this process, and others where it is urgent; they also see the commit itself.

        Others watch the log, and are told by a touch of it. SQLite opens its log for writing, so that its own events
        are different ones. Never touch a file that SQLite locks: to close it would drop the locks of this process.
        """
        self.subscribers.notify(hint)
        if hint.kind == "jobs" and self._files is not None:
            self.touches += 1
            with contextlib.suppress(OSError):
                os.close(os.open(self._files.log, os.O_RDONLY))

    async def sort_in_memory(self) -> None:
        """Have statements keep what they set aside where it takes the least, now that no migration sorts whole tables.

        It is a few rows at a time. A file for them would be a cache of its own each time, of a tenth of a megabyte.
        """
        for thread in {self.writer, self.reader}:
            await thread.do(lambda connection: connection.execute("PRAGMA temp_store = MEMORY"))

    async def close(self) -> None:
        """Finish what was asked for and end the threads."""
        # A transaction that outlives the store still has a thread to end in.
        ended, self.handler_thread = self.handler_thread, ThreadPoolExecutor(1, "duetime-sqlite-lend")
        ended.shutdown(wait=False)
        self.writer.later(self.checkpoints.end)
        # From the last to the first, and each also if the wait for one before it is cancelled.
        async with contextlib.AsyncExitStack() as ends:
            ends.push_async_callback(self.checkpoints.ended)
            ends.push_async_callback(self.writer.close)
            ends.push_async_callback(self.reader.close)

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
        return self._connect(
            "PRAGMA journal_mode = WAL", _FIRST_READ, f"PRAGMA synchronous = {self._synchronous}"
        )

    def _connect_reader(self) -> sqlite3.Connection:
        return self._connect(_FIRST_READ, "PRAGMA query_only = 1")

    def _connect(self, *settings: str) -> sqlite3.Connection:
        if self._files is None and self.path is not None:
            raise NotOpen(NOT_OPEN)
        # Before, so that no file is made where one was deleted; after, so that it is the file we know.
        self.look()
        database = ":memory:" if self._files is None else self._files.database
        # We wait in our own way: see `pause_for_writers`.
        ours: dict[str, Any] = {"timeout": 0, "isolation_level": None, "check_same_thread": False}
        connection: sqlite3.Connection = sqlite3.connect(
            database, **ours, cached_statements=_CACHED_STATEMENTS
        )
        try:
            self.look()
            for setting in (*SETTINGS, *settings):
                # Others are in the way when many processes open a new file at once.
                wait_to_write(partial(_fetch, connection, setting), timeout=_LONGEST_WAIT)
        except BaseException:
            connection.close()
            raise
        return connection


class OpenFiles:
    """An open database and its log, by their paths and by what these led to when they were opened."""

    def __init__(self, path: StrPath) -> None:
        # Absolute, because the process may change its folder.
        self.database = os.path.abspath(path)
        self.log = log_of(path)
        found = os.stat(self.database)
        self._device, self._inode = found.st_dev, found.st_ino
        self._inode_of_log: int | None = None
        self._size_of_log = 0
        self._next_look_at_log = 0.0

    def note_log(self) -> None:
        """Include the log, which is there from the first read of a connection until the last one is closed."""
        # Without shared memory, as on some file systems, SQLite keeps another journal.
        with contextlib.suppress(FileNotFoundError):
            self._inode_of_log = os.stat(self.log).st_ino

    def look(self) -> int:
        """Return the size of the log, or raise `StoreLost` where a path does not lead to what is open.

        By `stat` alone: to open and close a file that SQLite has locked would drop the locks of this process. The log is
        looked at every few milliseconds at most; without it, earlier commits are lost just the same.
        """
        path = self.database
        try:
            found = os.stat(path)
            if found.st_ino != self._inode or found.st_dev != self._device:
                raise _lost(path)
            now = time.monotonic()
            if self._inode_of_log is not None and now >= self._next_look_at_log:
                found = os.stat(path := self.log)
                if found.st_ino != self._inode_of_log:
                    raise _lost(path)
                self._size_of_log = found.st_size
                self._next_look_at_log = now + LOG_LOOKS
        except OSError as error:
            raise _lost(path) from error
        return self._size_of_log


def _lost(path: str) -> StoreLost:
    return StoreLost(
        f"{path} was deleted or replaced while it was open, and what is written there is lost; nothing more is "
        "accepted: put it back or restore a backup, then restart every process that uses it"
    )


def _fetch(connection: sqlite3.Connection, statement: str) -> object:
    return connection.execute(statement).fetchall()
