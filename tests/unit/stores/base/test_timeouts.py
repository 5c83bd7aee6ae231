"""How long calls wait for a server that says nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import asyncpg
import pytest

from duetime.errors import ConfigError, StoreUnavailable
from duetime.stores.base.timeouts import ServerTimeouts, call_deadline
from duetime.stores.open import open_store
from duetime.stores.redis.address import RedisAddress
from duetime.stores.redis.connection import FunctionCalls
from duetime.stores.sql.driver import Script
from duetime.stores.sql.pool.connections import ConnectionPool
from duetime.stores.sql.pool.driver import OpenConnections, PooledDriver, SharedHints
from duetime.stores.sql.pool.errors import DatabaseLabel
from duetime.stores.sql.postgres.errors import PostgresErrors


def test_a_short_call_has_eight_seconds_and_a_millisecond_for_each_row() -> None:
    assert call_deadline(0) == (8, 8)
    assert call_deadline(10_000) == (18, 18)


def test_two_tries_of_one_row_take_less_than_ten_seconds() -> None:
    first, whole = call_deadline(1, repeatable=True)
    assert first is not None
    assert whole is not None
    assert 2 * first <= whole < 10


def test_each_try_of_a_batch_has_time_for_all_its_rows() -> None:
    first, whole = call_deadline(10_000, repeatable=True)
    assert first is not None
    assert whole is not None
    assert first > 10
    assert whole - first > 10


def test_what_may_take_long_is_not_bounded_as_a_whole() -> None:
    assert call_deadline(None) == (None, None)


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb", "redis"])
@pytest.mark.parametrize("timeout", ["0", "601", "-1", "1.5", "soon"])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(scheme: str, timeout: str) -> None:
    with pytest.raises(ConfigError, match="timeout must be a number from 1 to 600"):
        open_store(f"{scheme}://localhost/0?timeout={timeout}")


async def test_all_who_keep_connections_are_told_in_their_own_event_loops() -> None:
    patience, told = ServerTimeouts(), list[threading.Thread]()
    ready, over = threading.Event(), threading.Event()

    def note() -> None:
        told.append(threading.current_thread())
        over.set()

    async def elsewhere() -> None:
        patience.watch(note)
        ready.set()
        await asyncio.to_thread(over.wait, 10)

    thread = threading.Thread(target=asyncio.run, args=(elsewhere(),))
    thread.start()
    await asyncio.to_thread(ready.wait, 10)
    forget = patience.watch(note)
    patience.watch(note)
    forget()
    patience.lose()
    assert threading.current_thread() in told, "at once, where it is noticed"
    await asyncio.to_thread(thread.join, 10)
    assert sorted(told, key=id) == sorted([thread, threading.current_thread()], key=id)


async def test_a_wait_that_ends_when_another_thread_gives_connections_up_is_not_disturbed() -> None:
    patience, errors = ServerTimeouts(), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    async with asyncio.timeout(None) as scope:  # noqa: ASYNC100 -- it is to be over by then
        forget = patience.interrupt(scope)
        thread = threading.Thread(target=patience.lose)
        thread.start()
        thread.join()
        forget()
    await asyncio.sleep(0)
    assert not errors


async def test_connections_that_were_opened_a_moment_ago_are_not_given_up_again() -> None:
    patience, told = ServerTimeouts(), list[int]()
    patience.watch(lambda: told.append(1))
    patience.lose()
    patience.lose()
    assert told == [1]


class Connection:
    closed = False

    def is_closed(self) -> bool:
        return self.closed

    def is_in_transaction(self) -> bool:
        return False

    def terminate(self) -> None:
        self.closed = True

    async def close(self, *, timeout: float) -> None:
        self.closed = True


class Connector:
    """Makes connections on which the work of a test is done."""

    errors = PostgresErrors(DatabaseLabel.of("postgresql://app@db.example/app"))
    most_tries = 5
    pooled = False
    begin = ""
    reached = True
    """Whether new connections can be made."""

    def __init__(self) -> None:
        self.timeouts = ServerTimeouts(0.05)
        self.made: list[Connection] = []

    async def connect(self) -> Connection:
        if not self.reached:
            await asyncio.Event().wait()
        self.made.append(Connection())
        return self.made[-1]


Work = Callable[[Connection], Awaitable[str]]


class Driver(PooledDriver[Any]):
    """Does work of a test in place of scripts."""

    def __init__(self, connector: Connector, *, size: int = 2) -> None:
        super().__init__(cast("Any", connector), clock=None, shared=SharedHints())
        self._size = size

    def _make_connections(self) -> OpenConnections[Any]:
        pool = ConnectionPool(self._connector.connect, size=self._size)
        return OpenConnections(pool, pool, cast("Any", None))

    def _examine(self) -> Any:
        raise NotImplementedError

    async def _play(self, script: Any, connection: Connection, within: float | None, *, atomic: bool) -> Any:
        del atomic
        async with asyncio.timeout(within):
            return await script(connection)


async def silent(_connection: object) -> Script[str]:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture
def connector() -> Connector:
    return Connector()


@pytest.fixture
async def driver(connector: Connector) -> Driver:
    driver = Driver(connector)
    await driver.open()
    return driver


async def test_what_can_be_repeated_is_repeated_on_a_new_connection_and_all_unused_ones_are_closed(
    driver: Driver, connector: Connector
) -> None:
    used: list[Connection] = []

    async def again(connection: Connection) -> str:
        used.append(connection)
        return "done"

    await two_connections(driver)
    assert await driver.write(cast("Any", silent), again=cast("Any", again)) == "done"
    assert [connection.closed for connection in connector.made] == [True, True, False]
    assert used == connector.made[2:]


async def test_what_cannot_be_repeated_is_not(driver: Driver, connector: Connector) -> None:
    with pytest.raises(StoreUnavailable, match="did not answer in time"):
        await driver.write(cast("Any", silent))
    assert len(connector.made) == 1


async def two_connections(driver: Driver) -> None:
    both = asyncio.Barrier(2)

    async def warm(_connection: Connection) -> None:
        await both.wait()

    await asyncio.gather(driver.write(cast("Any", warm)), driver.write(cast("Any", warm)))


@pytest.mark.parametrize("again", [None, silent])
async def test_a_call_that_met_a_lock_before_the_time_was_up_says_so_and_gives_no_other_connection_up(
    driver: Driver, connector: Connector, again: Any
) -> None:
    tries = iter([asyncpg.LockNotAvailableError("canceling statement due to lock timeout")])

    async def locked(connection: Connection) -> Any:
        for error in tries:
            raise error
        return await silent(connection)

    await two_connections(driver)
    with pytest.raises(StoreUnavailable, match="keeps a lock"):
        await driver.write(cast("Any", locked), again=again)
    assert [connection.closed for connection in connector.made].count(False) == 1


@pytest.mark.parametrize(("rows", "closed"), [(1, 2), (None, 1)])
async def test_only_a_caller_who_gives_up_on_a_short_call_is_a_reason_to_give_other_connections_up(
    driver: Driver, connector: Connector, monkeypatch: pytest.MonkeyPatch, rows: int | None, closed: int
) -> None:
    monkeypatch.setattr("duetime.stores.base.timeouts._SUSPICIOUS_WAIT", 0)
    await two_connections(driver)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await driver.write(cast("Any", silent), rows=rows)
    assert [connection.closed for connection in connector.made].count(True) == closed


async def test_the_connection_of_the_second_try_is_made_within_the_time_of_the_call(
    driver: Driver, connector: Connector
) -> None:
    await two_connections(driver)
    connector.reached = False
    async with asyncio.timeout(5):
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await driver.write(cast("Any", silent), again=cast("Any", silent))


async def test_to_wait_for_a_free_connection_is_not_counted(connector: Connector) -> None:
    driver = Driver(connector, size=1)
    await driver.open()
    began, free = asyncio.Event(), asyncio.Event()

    async def long(_connection: Connection) -> None:
        began.set()
        await free.wait()

    async def short(_connection: Connection) -> str:
        return "done"

    first = asyncio.create_task(driver.write(cast("Any", long), rows=None))
    await began.wait()
    second = asyncio.create_task(driver.write(cast("Any", short)))
    done, _ = await asyncio.wait({second}, timeout=0.1)
    assert not done, "it waits for longer than it may take"
    free.set()
    await first
    assert await second == "done"


async def test_nor_is_it_counted_on_redis_where_the_primary_has_to_be_asked_for() -> None:
    calls = FunctionCalls(
        RedisAddress.of("redis+cluster://localhost?pool=1&timeout=1"), namespace="n", clock=None
    )
    served: list[str] = []

    class Client:
        only = asyncio.Lock()

        async def execute_command(self, *words: Any) -> bytes:
            async with self.only:
                await asyncio.sleep(0.15)
                served.append(words[1])
                return b""

    await calls.open()
    calls._client = Client()
    timeout = calls.timeouts.deadline(repeatable=True).first
    await asyncio.gather(*(calls._send(("FCALL_RO", str(n)), timeout=timeout) for n in range(6)))
    assert len(served) == 6
