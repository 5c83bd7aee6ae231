from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from duetime.errors import NotOpen, StoreUnavailable
from duetime.failpoints import arm
from duetime.stores.sql.sqlite import lane as lane_module
from duetime.stores.sql.sqlite.database import Database
from duetime.stores.sql.sqlite.lane import Lane, Task


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lane.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    database = Database(path)
    await database.open()
    await write(database.writer, "CREATE TABLE t (n integer PRIMARY KEY)")
    yield database
    await database.close()


async def write(lane: Lane, statement: str, name: str = "") -> object:
    return await lane.do(lambda connection: connection.execute(statement).fetchall(), name=name, grouped=True)


def numbers(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [n for (n,) in connection.execute("SELECT n FROM t ORDER BY n")]


class Gate:
    """Keeps a lane busy, so that what is asked for meanwhile piles up behind it."""

    def __init__(self, lane: Lane) -> None:
        self._entered = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._open = threading.Event()
        self._passed = asyncio.ensure_future(lane.do(self._wait))

    def _wait(self, _: sqlite3.Connection) -> None:
        self._loop.call_soon_threadsafe(self._entered.set)
        self._open.wait()

    async def __aenter__(self) -> None:
        await self._entered.wait()

    async def __aexit__(self, *_: object) -> None:
        # Let those who have been started come to their first wait.
        await asyncio.sleep(0)
        self._open.set()
        await self._passed


async def together(lane: Lane, *statements: str) -> list[object]:
    async with Gate(lane):
        tasks = [asyncio.ensure_future(write(lane, statement)) for statement in statements]
    return await asyncio.gather(*tasks, return_exceptions=True)


def commits(path: Path) -> int:
    """How many commits the log holds: frames whose header has the size of the database."""
    log = path.with_name(f"{path.name}-wal").read_bytes()
    size = 24 + 4096
    marks = [log[place + 4 : place + 8] for place in range(32, len(log), size)]
    return sum(mark != b"\0\0\0\0" for mark in marks)


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
        sqlite3.IntegrityError,
        sqlite3.OperationalError,
        list,
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
    with pytest.raises(sqlite3.OperationalError):
        await first
    await second
    with pytest.raises(sqlite3.OperationalError):
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
    assert isinstance(await beside("INSERT INTO t VALUES (10)"), sqlite3.IntegrityError)
    assert runs == [0, 1, 2]
    assert numbers(path) == [0, 2, 10]


async def test_a_group_that_changes_nothing_writes_nothing(database: Database, path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    before = log.stat().st_size
    await together(database.writer, "DELETE FROM t WHERE n = 1", "UPDATE t SET n = n + 1")
    assert log.stat().st_size == before


async def test_a_group_is_bounded_by_what_it_changes(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_module, "_MOST_CHANGES", 2)
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
    monkeypatch.setattr(lane_module, "_PATIENCE", 0.05)
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
    database: Database, path: Path
) -> None:
    seen: list[tuple[str, list[int]]] = []

    def then() -> None:
        seen.append((threading.current_thread().name, numbers(path)))

    def insert(n: int) -> asyncio.Future[object]:
        statement = f"INSERT INTO t VALUES ({n})"
        work = database.writer.do(lambda connection: connection.execute(statement), grouped=True, then=then)
        return asyncio.ensure_future(work)

    async with Gate(database.writer):
        tasks = [insert(1), insert(2)]
    await asyncio.gather(*tasks)
    assert seen == [("duetime-sqlite-write", [1, 2])]


async def test_nothing_follows_what_was_not_committed(database: Database) -> None:
    called: list[None] = []

    def then() -> None:
        called.append(None)

    with pytest.raises(sqlite3.Error):
        await database.writer.do(lambda connection: connection.execute("nonsense"), grouped=True, then=then)
    async with Gate(database.writer):
        works = [
            database.writer.do(lambda connection: connection.execute("nonsense"), grouped=True, then=then),
            write(database.writer, "INSERT INTO t VALUES (1)"),
        ]
        tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not called


def insert(n: int, threads: list[str]) -> Callable[[sqlite3.Connection], None]:
    """Return work that stores a number and notes in which thread that was."""

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (?)", (n,))
        threads.append(threading.current_thread().name)

    return work


async def piled_up(lane: Lane, count: int) -> None:
    """Return when so many wait for a lane that is busy."""
    while lane._queue.qsize() < count:  # noqa: ASYNC110 -- other threads put them there
        await asyncio.sleep(0)


def named(name: str, function: Callable[[], object]) -> asyncio.Future[None]:
    """Run a function in a thread of this name, to its end."""
    ended = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()

    def run() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 -- whoever waits gets it
            loop.call_soon_threadsafe(ended.set_exception, error)
        else:
            loop.call_soon_threadsafe(ended.set_result, None)

    threading.Thread(target=run, name=name, daemon=True).start()
    return ended


async def test_a_thread_that_may_wait_writes_itself_where_nobody_else_does(
    database: Database, path: Path
) -> None:
    threads: list[str] = []
    await named("caller", lambda: database.writer.write_blocking(insert(1, threads)))
    assert threads == ["caller"]
    assert numbers(path) == [1]


async def test_a_thread_that_may_wait_joins_those_who_wait(database: Database, path: Path) -> None:
    threads: list[str] = []
    before = commits(path)
    async with Gate(database.writer):
        callers = [
            named("caller", partial(database.writer.write_blocking, insert(n, threads))) for n in range(3)
        ]
        await piled_up(database.writer, len(callers))
        loop = asyncio.ensure_future(write(database.writer, "INSERT INTO t VALUES (3)"))
    await asyncio.gather(*callers, loop)
    assert threads == ["duetime-sqlite-write"] * 3
    assert numbers(path) == [0, 1, 2, 3]
    assert commits(path) == before + 1


async def test_nobody_passes_by_the_lanes_own_thread_while_it_waits(database: Database, path: Path) -> None:
    threads: list[str] = []

    def call() -> None:
        database.writer.write_blocking(insert(1, threads))
        database.writer._wanted = True  # as it is while another thread writes
        database.writer.write_blocking(insert(2, threads))

    await named("caller", call)
    assert threads == ["caller", "duetime-sqlite-write"]
    assert not database.writer._wanted
    assert numbers(path) == [1, 2]


async def test_nobody_passes_by_those_who_wait_for_the_lane_to_wake_up(
    database: Database, path: Path
) -> None:
    answering, may_go = threading.Event(), threading.Event()
    threads: list[str] = []

    class Slow:
        def call_soon_threadsafe(self, *_: object) -> None:
            answering.set()
            may_go.wait()

    slow = Task(lambda _: None, "", grouped=False, loop=cast("asyncio.AbstractEventLoop", Slow()))
    database.writer._put(slow)
    await asyncio.to_thread(answering.wait)
    waiting = asyncio.ensure_future(write(database.writer, "INSERT INTO t VALUES (1)"))
    await asyncio.sleep(0)
    caller = named("caller", lambda: database.writer.write_blocking(insert(2, threads)))
    await piled_up(database.writer, 2)
    may_go.set()
    await asyncio.gather(waiting, caller)
    assert threads == ["duetime-sqlite-write"]
    assert numbers(path) == [1, 2]


async def test_a_lane_waits_for_the_thread_that_writes_itself(database: Database, path: Path) -> None:
    entered, may_go = threading.Event(), threading.Event()

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        entered.set()
        may_go.wait()

    caller = named("caller", lambda: database.writer.write_blocking(work))
    await asyncio.to_thread(entered.wait)
    later = asyncio.ensure_future(write(database.writer, "INSERT INTO t SELECT count(*) + 1 FROM t"))
    closing_task = asyncio.ensure_future(database.close())
    await asyncio.sleep(0)
    assert numbers(path) == []
    may_go.set()
    await asyncio.gather(caller, later, closing_task)
    assert numbers(path) == [1, 2]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
async def test_what_a_blocking_caller_raises_undoes_its_work_and_no_more(
    database: Database, path: Path, error: type[BaseException]
) -> None:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        raise error

    def call() -> None:
        with pytest.raises(error):
            database.writer.write_blocking(work)

    await named("caller", call)
    await write(database.writer, "INSERT INTO t VALUES (2)")
    assert numbers(path) == [2]


async def test_a_signal_handler_does_not_wait_for_the_write_that_it_has_interrupted(
    database: Database, path: Path
) -> None:
    def handler() -> None:
        with pytest.raises(StoreUnavailable, match="signal handler"):
            database.writer.write_blocking(insert(2, []))

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        handler()

    await named("caller", lambda: database.writer.write_blocking(work))
    await named("caller", lambda: database.writer.write_blocking(insert(3, [])))
    assert numbers(path) == [1, 3]


async def test_a_blocking_caller_gets_its_own_error_and_not_that_of_its_neighbours(
    database: Database, path: Path
) -> None:
    def fail() -> None:
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            database.writer.write_blocking(lambda c: c.execute("INSERT INTO nowhere VALUES (1)"))

    async with Gate(database.writer):
        callers = [
            named("caller", fail),
            named("caller", lambda: database.writer.write_blocking(insert(1, []))),
        ]
        await piled_up(database.writer, len(callers))
    await asyncio.gather(*callers)
    assert numbers(path) == [1]


async def test_what_follows_the_commit_of_a_blocking_caller_comes_when_it_can_be_seen(
    database: Database, path: Path
) -> None:
    seen: list[list[int]] = []
    call = partial(database.writer.write_blocking, insert(1, []), then=lambda: seen.append(numbers(path)))
    await named("caller", call)
    assert seen == [[1]]


async def test_a_blocking_caller_of_a_closed_lane_is_refused(database: Database) -> None:
    writer = database.writer
    await database.close()
    with pytest.raises(NotOpen, match="closed"):
        await named("caller", lambda: writer.write_blocking(insert(1, [])))


async def test_a_blocking_caller_in_a_forked_process_is_told_to_open_its_own(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(NotOpen, match="forked"):
        await named("caller", lambda: database.writer.write_blocking(insert(1, [])))
    monkeypatch.undo()
