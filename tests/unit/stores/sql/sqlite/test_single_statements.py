"""Statements that are a transaction by themselves where they are alone."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duetime.errors import StoreError, StoreUnavailable
from duetime.failpoints import arm
from duetime.stores.sql.sqlite import connection as connection_module
from duetime.stores.sql.sqlite.connection import ConnectionThread
from duetime.stores.sql.sqlite.database import Database
from tests.unit.stores.sql.sqlite.kit import Gate, commits, numbers


async def store(lane: ConnectionThread, n: int, name: str = "") -> object:
    """Store a number by the one statement that a task consists of."""
    return await lane.do(
        lambda connection: connection.execute("INSERT INTO t VALUES (?)", (n,)).rowcount,
        name=lambda: name,
        grouped=True,
        single=True,
    )


async def test_one_statement_alone_is_a_transaction_by_itself(database: Database, path: Path) -> None:
    said: list[str] = []
    await database.writer.do(lambda connection: connection.set_trace_callback(said.append))
    before = commits(path)
    assert await store(database.writer, 1) == 1
    await asyncio.to_thread(
        database.writer.write_blocking, lambda c: c.execute("INSERT INTO t VALUES (2)"), single=True
    )
    assert said == ["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"]
    assert commits(path) == before + 2
    assert numbers(path) == [1, 2]


async def test_one_statement_shares_the_commit_of_its_neighbours(database: Database, path: Path) -> None:
    before = commits(path)
    async with Gate(database.writer):
        tasks = [asyncio.ensure_future(store(database.writer, n)) for n in (1, 2, 3)]
    await asyncio.gather(*tasks)
    assert commits(path) == before + 1
    async with Gate(database.writer):
        tasks = [asyncio.ensure_future(store(database.writer, n)) for n in (4, 4, 5)]
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [int, StoreError, int]
    assert numbers(path) == [1, 2, 3, 4, 5]


async def test_one_statement_that_fails_leaves_nothing_behind(database: Database, path: Path) -> None:
    await store(database.writer, 1)
    with pytest.raises(StoreError):
        await store(database.writer, 1)
    await store(database.writer, 2)
    assert numbers(path) == [1, 2]


async def test_one_statement_waits_for_another_process_and_gives_up_on_one_that_never_finishes(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(store(database.writer, 1))
        await database.reader.do(lambda _: None)
        assert not waiting.done()
        other.execute("COMMIT")
        await waiting
        monkeypatch.setattr(connection_module, "_LONGEST_WAIT", 0.05)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await store(database.writer, 2)
    assert numbers(path) == [1]


async def test_one_statement_is_not_lost_in_a_transaction_that_nobody_commits(
    database: Database, path: Path
) -> None:
    await database.writer.do(lambda connection: connection.execute("BEGIN"))
    with pytest.raises(StoreError, match="within a transaction"):
        await store(database.writer, 1)
    await store(database.writer, 2)
    assert numbers(path) == [2]


async def test_a_fault_before_one_statement_leaves_nothing_and_one_after_it_all(
    database: Database, path: Path
) -> None:
    try:
        arm("before:add:raise")
        with pytest.raises(Exception, match="before:add"):
            await store(database.writer, 1, "add")
        assert numbers(path) == []
        arm("after:add:raise")
        with pytest.raises(Exception, match="after:add"):
            await store(database.writer, 2, "add")
        assert numbers(path) == [2]
    finally:
        arm(None)
