"""A SQLite database as one process has it open: a writing thread and a reading one."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from duetime.errors import NotOpen
from duetime.stores.sql.sqlite import filesystem
from duetime.stores.sql.sqlite.filesystem import StrPath
from duetime.stores.sql.sqlite.lane import Lane
from duetime.stores.sql.sqlite.waiting import tries
from duetime.stores.sql.sqlite.watch import Nudges

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

_STATEMENTS: Final = 256
_PATIENCE: Final = 10.0


class Database:
    """Opens and closes the threads; without a path, a database in memory that ends with them.

    The log is checkpointed as SQLite does by itself, after a thousand pages and when the last connection closes.
    """

    def __init__(self, path: StrPath | None, *, synchronous: Synchronous = "FULL", make: bool = True) -> None:
        self.path = path
        self._make = make
        self.nudges = None if path is None else Nudges(path)
        """How other processes are told of new jobs; a database in memory has no others."""
        self._synchronous = synchronous
        self._writer: Lane | None = None
        self._reader: Lane | None = None
        self.turn = asyncio.Lock()
        """Held by the one handler of this process whose transaction is open; first come, first served."""
        self._lending: ThreadPoolExecutor | None = None

    @property
    def writer(self) -> Lane:
        """The thread that writes."""
        if self._writer is None:
            raise NotOpen("the store is not open; use it inside `async with scheduler`")
        return self._writer

    @property
    def reader(self) -> Lane:
        """The thread that reads; the writing one itself where the database is in memory."""
        return self._reader or self.writer

    @property
    def lending(self) -> ThreadPoolExecutor:
        """The thread that begins and ends the transactions of handlers; there is none before the first."""
        if self._lending is None:
            from concurrent.futures import ThreadPoolExecutor

            self._lending = ThreadPoolExecutor(1, "duetime-sqlite-lend")
        return self._lending

    async def open(self) -> None:
        """Start the threads and see that the file can be used."""
        if self._writer is not None:
            return
        self._writer = Lane(self._connect_first, name="duetime-sqlite-write")
        try:
            await self._writer.start()
            if self.path is not None:
                self._reader = Lane(self._connect_reader, name="duetime-sqlite-read")
                await self._reader.start()
        except BaseException:
            await self.close()
            raise

    async def sort_in_memory(self) -> None:
        """Have statements keep what they set aside where it takes the least, now that no migration sorts whole tables.

        It is a few rows at a time. A file for them would be a cache of its own each time, of a tenth of a megabyte.
        """
        for lane in {self.writer, self.reader}:
            await lane.do(lambda connection: connection.execute("PRAGMA temp_store = MEMORY"))

    async def close(self) -> None:
        """Finish what was asked for and end the threads."""
        lending, self._lending = self._lending, None
        if lending is not None:
            lending.shutdown(wait=False)
        lanes, self._writer, self._reader = (self._writer, self._reader), None, None
        # From the last to the first, and each also if the wait for one before it is cancelled.
        async with contextlib.AsyncExitStack() as ends:
            for lane in lanes:
                if lane is not None:
                    ends.push_async_callback(lane.close)

    def _connect_first(self) -> sqlite3.Connection:
        """Return the connection that makes the file, if it may be made."""
        if self.path is not None:
            filesystem.prepare(self.path, make=self._make)
        return self.connect_writer()

    def connect_writer(self) -> sqlite3.Connection:
        """Return a connection that can write."""
        with contextlib.ExitStack() as undo:
            connection = self._connect()
            undo.callback(connection.close)
            if self.path is not None:
                # Others may be in the way, as when many processes open a new file at once.
                for wait in tries(
                    lambda: connection.execute("PRAGMA journal_mode = WAL"), patience=_PATIENCE
                ):
                    time.sleep(wait)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            undo.pop_all()
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        connection = self._connect()
        connection.execute("PRAGMA query_only = 1")
        return connection

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            ":memory:" if self.path is None else self.path,
            # Waiting is ours: see `lane`.
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS,
        )
