from __future__ import annotations

import sqlite3
import threading

from duetime.model.clock import SystemClock
from duetime.stores.sql.sqlite.database import Database
from duetime.stores.sql.sqlite.driver import SqliteDriver

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
