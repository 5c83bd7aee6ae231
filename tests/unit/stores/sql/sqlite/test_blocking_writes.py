"""Threads that write on the connection of a lane themselves, or join it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

from duetime.errors import NotOpen, StoreError, StoreUnavailable
from duetime.stores.base import Hint
from duetime.stores.sql.sqlite.connection import ConnectionRequest, __file__
from duetime.stores.sql.sqlite.database import Database
from tests.unit.stores.sql.sqlite.kit import Gate, commits, insert, named, numbers, piled_up, write


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

    slow = ConnectionRequest(lambda _: None, loop=cast("asyncio.AbstractEventLoop", Slow()))
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


@pytest.mark.parametrize("joins", [False, True], ids=["writes-itself", "joins-the-lane"])
@pytest.mark.parametrize("waited_for", [False, True], ids=["lane-idle", "lane-waits"])
async def test_a_signal_handler_that_stores_never_waits_for_itself_whatever_it_interrupts(
    database: Database, path: Path, *, joins: bool, waited_for: bool
) -> None:
    stored: set[int] = set()

    def handler(n: int) -> None:
        database.writer._wanted = waited_for
        try:
            database.writer.write_blocking(insert(n, []))
        except StoreUnavailable:
            return
        stored.add(n)

    def interrupted() -> bool:
        """Store two numbers, one from a handler that comes one step later than the last time; False: after the end."""
        number = 2 * next(steps)
        database.writer._wanted = joins
        with signalled(number // 2, lambda: handler(number + 1)) as came:
            database.writer.write_blocking(insert(number, []))
        stored.add(number)
        return came.is_set()

    def each_step() -> None:
        while interrupted():
            pass

    steps = count()
    async with asyncio.timeout(20):
        await named("caller", each_step)
    assert next(steps) > 10
    assert any(n % 2 for n in stored)
    assert numbers(path) == sorted(stored)


@contextmanager
def signalled(step: int, handler: Callable[[], None]) -> Iterator[threading.Event]:
    """Call a handler in this thread before the given instruction of the lane's code, and tell whether it came to that."""
    instructions = count()
    came = threading.Event()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != __file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(instructions) == step:
            came.set()
            handler()
        return trace

    before = sys.gettrace()
    # Python 3.12 tells of instructions only if the frame that begins to trace asks for them.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        yield came
    finally:
        sys.settrace(before)


async def test_a_blocking_caller_gets_its_own_error_and_not_that_of_its_neighbours(
    database: Database, path: Path
) -> None:
    def fail() -> None:
        with pytest.raises(StoreError, match="nowhere"):
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
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[int]] = []
    monkeypatch.setattr(database.subscribers, "notify", lambda _: seen.append(numbers(path)))
    call = partial(database.writer.write_blocking, insert(1, []), hint=Hint("jobs"))
    await named("caller", call)
    assert seen == [[1]]


async def test_a_blocking_caller_of_a_closed_lane_is_refused(database: Database) -> None:
    writer = database.writer
    await database.close()
    with pytest.raises(NotOpen, match="not open"):
        await named("caller", lambda: writer.write_blocking(insert(1, [])))


async def test_a_blocking_caller_in_a_forked_process_is_told_to_open_its_own(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(NotOpen, match="forked"):
        await named("caller", lambda: database.writer.write_blocking(insert(1, [])))
    monkeypatch.undo()
