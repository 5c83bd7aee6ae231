from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from duetime.errors import NotOpen, StoreUnavailable
from duetime.stores.sql.pool import connections as module
from duetime.stores.sql.pool.connections import ConnectionPool
from duetime.stores.sql.postgres.connection import PostgresConnection


class FakeConnection:
    def __init__(self) -> None:
        self.closed = False

    def is_closed(self) -> bool:
        return self.closed

    def terminate(self) -> None:
        self.closed = True

    async def close(self, *, timeout: float) -> None:
        self.closed = True


class Server:
    """Makes connections and counts them."""

    def __init__(self) -> None:
        self.made: list[FakeConnection] = []
        self.refuses = False

    async def connect(self) -> PostgresConnection:
        await asyncio.sleep(0)
        if self.refuses:
            raise StoreUnavailable
        self.made.append(FakeConnection())
        return cast("PostgresConnection", self.made[-1])

    @property
    def connected(self) -> int:
        return sum(not connection.closed for connection in self.made)


async def rounds() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_connection_used_last_is_used_next() -> None:
    server = Server()
    pool = ConnectionPool(server.connect, size=3)
    first, second = await pool.acquire(), await pool.acquire()
    pool.release(first, keep=True)
    pool.release(second, keep=True)
    assert await pool.acquire() is second
    assert await pool.acquire() is first


async def test_never_more_connections_than_allowed_are_open() -> None:
    server = Server()
    pool = ConnectionPool(server.connect, size=3)

    async def use() -> None:
        connection = await pool.acquire()
        await asyncio.sleep(0)
        pool.release(connection, keep=len(server.made) % 2 == 0)
        assert server.connected <= 3

    await asyncio.gather(*(use() for _ in range(100)))


async def test_who_waits_longest_is_served_first() -> None:
    pool = ConnectionPool(Server().connect, size=1)
    held = await pool.acquire()
    served: list[int] = []

    async def use(n: int) -> None:
        connection = await pool.acquire()
        served.append(n)
        pool.release(connection, keep=n != 2)

    waiting = [asyncio.ensure_future(use(n)) for n in range(5)]
    await rounds()
    pool.release(held, keep=True)
    await asyncio.gather(*waiting)
    assert served == [0, 1, 2, 3, 4]


async def test_a_connection_that_died_while_unused_is_not_handed_out() -> None:
    server = Server()
    pool = ConnectionPool(server.connect, size=1)
    connection = await pool.acquire()
    pool.release(connection, keep=True)
    server.made[0].closed = True
    assert await pool.acquire() is not connection


async def test_a_server_that_refuses_leaves_every_place_free() -> None:
    server = Server()
    pool = ConnectionPool(server.connect, size=2)
    server.refuses = True
    answers = await asyncio.gather(*(pool.acquire() for _ in range(10)), return_exceptions=True)
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    server.refuses = False
    await asyncio.gather(pool.acquire(), pool.acquire())


@pytest.mark.parametrize("keep", [True, False])
async def test_what_a_cancelled_waiter_was_just_given_goes_to_the_next(keep: bool) -> None:
    pool = ConnectionPool(Server().connect, size=1)
    held = await pool.acquire()
    leaving, staying = asyncio.ensure_future(pool.acquire()), asyncio.ensure_future(pool.acquire())
    await rounds()
    pool.release(held, keep=keep)
    leaving.cancel()
    await staying
    assert leaving.cancelled()


async def test_a_waiter_gives_up_after_a_time_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_WAIT", 0.001)
    pool = ConnectionPool(Server().connect, size=1)
    held = await pool.acquire()
    with pytest.raises(StoreUnavailable, match="pool="):
        await pool.acquire()
    pool.release(held, keep=True)
    assert await pool.acquire() is held


async def test_connections_that_lie_unused_are_closed_but_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[Callable[[], None]] = []

    def call_later(_delay: float, callback: Callable[[], None], *_: Any) -> asyncio.TimerHandle:
        timers.append(callback)
        return asyncio.TimerHandle(0, callback, (), loop)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(module, "_IDLE", 0.0)
    server = Server()
    pool = ConnectionPool(server.connect, size=3)
    used = [await pool.acquire() for _ in range(3)]
    monkeypatch.setattr(loop, "call_later", call_later)
    for connection in used:
        pool.release(connection, keep=True)
    (trim,) = timers
    trim()
    assert server.connected == 1
    assert await pool.acquire() is used[-1]
    await asyncio.gather(pool.acquire(), pool.acquire())


async def test_clearing_closes_what_is_unused_and_frees_its_places() -> None:
    server = Server()
    pool = ConnectionPool(server.connect, size=2)
    held, unused = await pool.acquire(), await pool.acquire()
    pool.release(unused, keep=True)
    pool.clear()
    assert server.connected == 1
    assert await pool.acquire() is not unused
    assert not held.is_closed()


async def test_closing_waits_for_what_is_in_use_and_refuses_what_comes() -> None:
    server = Server()
    pool = ConnectionPool(server.connect, size=1)
    held = await pool.acquire()
    waiting = asyncio.ensure_future(pool.acquire())
    await rounds()
    closing = asyncio.ensure_future(pool.close())
    await rounds()
    assert not closing.done()
    assert server.connected == 1
    with pytest.raises(NotOpen):
        await waiting
    with pytest.raises(NotOpen):
        await pool.acquire()
    pool.release(held, keep=True)
    await closing
    assert server.connected == 0
    await pool.close()


async def test_closing_ends_what_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GRACE", 0.001)
    server = Server()
    pool = ConnectionPool(server.connect, size=1)
    held = await pool.acquire()
    await pool.close()
    assert server.connected == 0
    pool.release(held, keep=False)


async def test_a_connection_that_is_made_while_the_pool_is_closed_is_closed_too() -> None:
    server = Server()
    pool = ConnectionPool(server.connect, size=1)
    coming = asyncio.ensure_future(pool.acquire())
    await asyncio.sleep(0)
    await pool.close()
    with pytest.raises(NotOpen):
        await coming
    assert server.connected == 0
