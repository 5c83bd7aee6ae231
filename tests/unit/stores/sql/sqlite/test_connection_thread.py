"""Work in the one thread that owns a connection."""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from duetime.errors import NotOpen, StoreError, StoreUnavailable
from duetime.failpoints import arm
from duetime.stores.base import Hint
from duetime.stores.sql.sqlite import connection as connection_module
from duetime.stores.sql.sqlite.database import Database
from tests.unit.stores.sql.sqlite.kit import Gate, commits, numbers, passed, together, write


async def test_writes_that_wait_together_are_committed_together(database: Database, path: Path) -> None:
    before = commits(path)
    await together(database.writer, *(f"INSERT INTO t VALUES ({n})" for n in range(10)))
    assert numbers(path) == list(range(10))
    assert commits(path) == before + 1


async def test_one_that_fails_does_not_hurt_its_neighbours(database: Database, path: Path) -> None:
    answers = await together(
        database.writer,
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO nowhere VALUES (1)",
        "INSERT INTO t VALUES (2) RETURNING n",
    )
    assert [type(answer) for answer in answers] == [
        list,
        StoreError,
        StoreError,
        list,
    ]
    assert [type(cast("BaseException", error).__cause__) for error in answers[1:3]] == [
        sqlite3.IntegrityError,
        sqlite3.OperationalError,
    ]
    assert answers[3] == [(2,)]
    assert numbers(path) == [1, 2]


async def test_what_a_failing_script_had_written_is_undone(database: Database, path: Path) -> None:
    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("INSERT INTO nowhere VALUES (1)")

    async with Gate(database.writer):
        first = asyncio.ensure_future(database.writer.do(half, grouped=True))
        second = asyncio.ensure_future(write(database.writer, "INSERT INTO t VALUES (2)"))
    with pytest.raises(StoreError):
        await first
    await second
    with pytest.raises(StoreError):
        await database.writer.do(half, grouped=True)
    assert numbers(path) == [2]


async def test_a_script_runs_once_unless_a_neighbour_fails(database: Database, path: Path) -> None:
    runs: list[int] = []

    def add(connection: sqlite3.Connection) -> None:
        runs.append(len(runs))
        connection.execute("INSERT INTO t VALUES (?)", (runs[-1],))

    async def beside(statement: str) -> object:
        async with Gate(database.writer):
            ours = asyncio.ensure_future(database.writer.do(add, grouped=True))
            neighbour = asyncio.ensure_future(write(database.writer, statement))
        await ours
        return (await asyncio.gather(neighbour, return_exceptions=True))[0]

    assert await beside("INSERT INTO t VALUES (10)") == []
    assert runs == [0]
    assert isinstance(await beside("INSERT INTO t VALUES (10)"), StoreError)
    assert runs == [0, 1, 2]
    assert numbers(path) == [0, 2, 10]


async def test_a_group_that_changes_nothing_writes_nothing(database: Database, path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    before = log.stat().st_size
    await together(database.writer, "DELETE FROM t WHERE n = 1", "UPDATE t SET n = n + 1")
    assert log.stat().st_size == before


async def test_a_lane_tells_whether_it_writes_or_has_written_since(database: Database) -> None:
    lane, told = database.writer, list[bool]()
    after = time.monotonic()
    assert not lane.writes_since(after)
    await lane.do(lambda _: told.append(lane.writes_since(math.inf)))
    await lane.do(lambda _: told.append(lane.writes_since(math.inf)), grouped=True)
    assert told == [False, True]
    assert lane.writes_since(after)
    assert not lane.writes_since(time.monotonic())


async def test_a_group_is_bounded_by_what_it_changes(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "_MOST_CHANGES", 2)
    before = commits(path)
    await together(database.writer, *(f"INSERT INTO t VALUES ({n})" for n in range(6)))
    assert commits(path) == before + 3


async def test_a_lane_serves_event_loops_of_several_threads(database: Database, path: Path) -> None:
    def thread(n: int) -> None:
        asyncio.run(write(database.writer, f"INSERT INTO t VALUES ({n})"))

    await asyncio.gather(*(asyncio.to_thread(thread, n) for n in range(8)))
    assert numbers(path) == list(range(8))


async def test_an_answer_nobody_waits_for_any_more_is_dropped(database: Database, path: Path) -> None:
    async with Gate(database.writer):
        task = asyncio.ensure_future(write(database.writer, "INSERT INTO t VALUES (1)"))
        await asyncio.sleep(0)
        task.cancel()
    await write(database.writer, "INSERT INTO t VALUES (2)")
    assert task.cancelled()
    assert 2 in numbers(path)


async def test_a_writer_waits_for_another_process_to_finish(database: Database, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(write(database.writer, "INSERT INTO t VALUES (1)"))
        await database.reader.do(lambda _: None)
        assert not waiting.done()
        other.execute("COMMIT")
        await waiting
    assert numbers(path) == [1]


async def test_a_writer_gives_up_on_a_process_that_never_finishes(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "_LONGEST_WAIT", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await write(database.writer, "INSERT INTO t VALUES (1)")
    await write(database.writer, "INSERT INTO t VALUES (2)")
    assert numbers(path) == [2]


async def test_a_fault_before_the_commit_leaves_nothing_and_one_after_it_all(
    database: Database, path: Path
) -> None:
    try:
        arm("before:add:raise")
        with pytest.raises(Exception, match="before:add"):
            await write(database.writer, "INSERT INTO t VALUES (1)", name="add")
        assert numbers(path) == []
        arm("after:add:raise")
        with pytest.raises(Exception, match="after:add"):
            await write(database.writer, "INSERT INTO t VALUES (2)", name="add")
        assert numbers(path) == [2]
    finally:
        arm(None)


async def test_what_was_asked_for_before_the_end_is_still_done(database: Database, path: Path) -> None:
    writer = database.writer
    async with Gate(writer):
        last = asyncio.ensure_future(write(writer, "INSERT INTO t VALUES (1)"))
        await asyncio.sleep(0)
        closing_task = asyncio.ensure_future(database.close())
    await asyncio.gather(last, closing_task)
    assert numbers(path) == [1]
    with pytest.raises(NotOpen):
        await write(writer, "INSERT INTO t VALUES (2)")


async def test_a_forked_process_is_told_to_open_its_own(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(NotOpen, match="forked"):
        await write(database.writer, "INSERT INTO t VALUES (1)")
    monkeypatch.undo()


async def test_what_follows_a_commit_comes_when_it_can_be_seen_and_once_for_a_group(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, Hint, list[int]]] = []

    def tell(hint: Hint) -> None:
        seen.append((threading.current_thread().name, hint, numbers(path)))

    monkeypatch.setattr(database.subscribers, "notify", tell)

    def insert(n: int) -> asyncio.Future[object]:
        statement = f"INSERT INTO t VALUES ({n})"
        work = database.writer.do(
            lambda connection: connection.execute(statement), grouped=True, hint=Hint("jobs")
        )
        future: asyncio.Future[object] = asyncio.ensure_future(work)
        return future

    async with Gate(database.writer):
        tasks = [insert(1), insert(2)]
    await asyncio.gather(*tasks)
    await passed(database.writer)
    assert seen == [("duetime-sqlite-write", Hint("jobs"), [1, 2])]


async def test_nothing_follows_what_was_not_committed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[Hint] = []
    monkeypatch.setattr(database.subscribers, "notify", called.append)
    hint = Hint("jobs")
    with pytest.raises(StoreError):
        await database.writer.do(lambda connection: connection.execute("nonsense"), grouped=True, hint=hint)
    async with Gate(database.writer):
        works = [
            database.writer.do(lambda connection: connection.execute("nonsense"), grouped=True, hint=hint),
            write(database.writer, "INSERT INTO t VALUES (1)"),
        ]
        tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.gather(*tasks, return_exceptions=True)
    await passed(database.writer)
    assert not called
