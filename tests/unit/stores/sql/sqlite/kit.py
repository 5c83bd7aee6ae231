"""What tests of a lane do over and over."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from duetime.stores.sql.sqlite.connection import ConnectionThread


async def write(lane: ConnectionThread, statement: str, name: str = "") -> object:
    return await lane.do(
        lambda connection: connection.execute(statement).fetchall(), name=lambda: name, grouped=True
    )


def numbers(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [n for (n,) in connection.execute("SELECT n FROM t ORDER BY n")]


async def passed(lane: ConnectionThread) -> None:
    """Return when a lane has done all that it was asked for, and what follows that."""
    await lane.do(lambda _: None)


class Gate:
    """Keeps a lane busy, so that what is asked for meanwhile piles up behind it."""

    def __init__(self, lane: ConnectionThread) -> None:
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


async def together(lane: ConnectionThread, *statements: str) -> list[object]:
    async with Gate(lane):
        tasks = [asyncio.ensure_future(write(lane, statement)) for statement in statements]
    return await asyncio.gather(*tasks, return_exceptions=True)


def commits(path: Path) -> int:
    """How many commits the log holds: frames whose header has the size of the database."""
    log = path.with_name(f"{path.name}-wal").read_bytes()
    size = 24 + 4096
    marks = [log[place + 4 : place + 8] for place in range(32, len(log), size)]
    return sum(mark != b"\0\0\0\0" for mark in marks)


def insert(n: int, threads: list[str]) -> Callable[[sqlite3.Connection], None]:
    """Return work that stores a number and notes in which thread that was."""

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (?)", (n,))
        threads.append(threading.current_thread().name)

    return work


async def piled_up(lane: ConnectionThread, count: int) -> None:
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
