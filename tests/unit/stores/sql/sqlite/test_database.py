from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest

from duetime.errors import NotOpen
from duetime.model.time import SECOND, SystemClock
from duetime.stores.sql.sqlite.database import Database
from duetime.stores.sql.sqlite.driver import SqliteDriver
from duetime.stores.sql.sqlite.transactions import SqliteHandlerTransaction
from tests.unit.stores.sql.sqlite.kit import Gate, passed

IN_FILES, IN_MEMORY = 0, 2


def temp_store(connection: sqlite3.Connection) -> int:
    place: int = connection.execute("PRAGMA temp_store").fetchone()[0]
    return place


async def places(database: Database) -> list[int]:
    return [await lane.do(temp_store) for lane in (database.writer, database.reader)]


async def test_whole_tables_are_sorted_in_files_and_in_memory_only_what_workers_set_aside(
    database: Database,
) -> None:
    driver = SqliteDriver(database, clock=SystemClock())
    await driver.open()
    assert await places(database) == [IN_FILES] * 2
    await driver.sibling().open()
    assert await places(database) == [IN_MEMORY] * 2


async def test_a_database_takes_a_thread_to_write_and_one_to_read_and_no_other(database: Database) -> None:
    names = {
        thread.name
        for thread in threading.enumerate()
        if thread.name.startswith(("asyncio", "duetime-sqlite"))
    }
    assert names == {"duetime-sqlite-write", "duetime-sqlite-read"}


async def test_whoever_is_cancelled_while_it_closes_a_database_leaves_no_thread_behind(
    database: Database,
) -> None:
    writer, reader = database.writer, database.reader
    async with Gate(reader):
        closing = asyncio.create_task(database.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(NotOpen):
            await passed(writer)
    # Whoever waits for the end as well is not cancelled with the other.
    await reader.close()


async def test_a_handler_is_told_of_bytes_that_are_no_text_instead_of_reading_replacements(
    database: Database,
) -> None:
    lent = SqliteHandlerTransaction(database, clock=SystemClock(), timeout=10 * SECOND)
    connection = await lent.begin()
    try:
        with pytest.raises(sqlite3.OperationalError, match="decode to UTF-8"):
            connection.execute("SELECT CAST(x'ff' AS text)").fetchone()
    finally:
        await lent.rollback()
