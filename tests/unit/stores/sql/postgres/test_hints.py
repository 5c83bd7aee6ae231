from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from duetime.errors import StoreUnavailable
from duetime.stores.base import Hint
from duetime.stores.sql.pool.connections import ConnectionPool
from duetime.stores.sql.pool.hints import decode_hints, encode_hints
from duetime.stores.sql.postgres.connection import PostgresConnection, PostgresConnector
from duetime.stores.sql.postgres.hints import NotificationSender
from tests.support.pace import one_moment


class FakeConnection:
    def __init__(self) -> None:
        self.sent: list[str] = []

    def is_closed(self) -> bool:
        return False

    async def execute(self, text: str) -> None:
        self.sent.append(text)

    async def close(self, *, timeout: float) -> None:
        pass

    def terminate(self) -> None:
        pass


class DeadConnection(FakeConnection):
    """A connection that has died and does not know yet."""

    async def execute(self, text: str) -> None:
        raise ConnectionResetError


async def rounds(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


def sender(pool: ConnectionPool[PostgresConnection]) -> NotificationSender:
    return NotificationSender(PostgresConnector("postgresql://h/d"), pool, namespace="c", name="me")


def notifier(connection: FakeConnection) -> NotificationSender:
    async def connect() -> PostgresConnection:
        return cast("PostgresConnection", connection)

    return sender(ConnectionPool(connect, size=1))


def test_hints_are_read_back_as_they_were_written() -> None:
    hints = [Hint("jobs"), Hint("worker", "w'1\\ \"ü"), Hint("schedules")]
    assert decode_hints(encode_hints("me", hints), own="you") == hints


def test_our_own_hints_are_left_out() -> None:
    assert decode_hints(encode_hints("me", [Hint("jobs")]), own="me") == []


def test_hints_too_many_for_one_notification_become_any() -> None:
    text = encode_hints("me", [Hint("worker", "ü" * 100) for _ in range(50)])
    assert len(text.encode()) < 8000
    assert decode_hints(text, own="you") == [Hint("any")]


@pytest.mark.parametrize("text", ["", "hello", "[]", '["me", [["sideways", ""]]]', '{"a": 1}'])
def test_what_other_software_sends_counts_as_any(text: str) -> None:
    assert decode_hints(text, own="me") == [Hint("any")]


async def test_a_hint_is_sent_at_once_and_a_burst_of_them_in_groups() -> None:
    connection = FakeConnection()
    sending = notifier(connection)
    with one_moment():
        sending.send(Hint("worker", "w0"))
        await rounds(10)
        (first,) = connection.sent
        for n in range(1, 1000):
            sending.send(Hint("worker", f"w{n}"))
            await rounds(1)
    await sending.close()
    (_, others) = connection.sent
    assert "w0" in first
    assert "w999" in others or "any" in others


async def test_notifications_come_further_apart_while_each_tells_of_several_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sending = notifier(FakeConnection())
    pauses: list[float] = []

    async def pause(seconds: float, turn: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        if seconds:
            pauses.append(seconds)
        await turn(0)

    monkeypatch.setattr(asyncio, "sleep", pause)
    with one_moment():
        for calls in (1, 3, 3, 3, 2, 1):
            for _ in range(calls):
                sending.send(Hint("jobs"))
            await rounds(10)
    await sending.close()
    assert pauses == pytest.approx([0.002, 0.004, 0.004, 0.004, 0.002])


async def test_nobody_waits_for_the_disk_on_account_of_a_hint() -> None:
    connection = FakeConnection()
    sending = notifier(connection)
    sending.send(Hint("worker", "w'1"))
    await sending.close()
    (text,) = connection.sent
    assert text.startswith('SET LOCAL synchronous_commit TO off; NOTIFY "c_hints", E')
    assert "w''1" in text


async def test_a_hint_whose_connection_has_died_unused_is_sent_over_a_fresh_one() -> None:
    fresh = FakeConnection()
    connections = iter([DeadConnection(), DeadConnection(), fresh])

    async def connect() -> PostgresConnection:
        return cast("PostgresConnection", next(connections))

    pool = ConnectionPool(connect, size=2)
    for each in [await pool.acquire(), await pool.acquire()]:
        pool.release(each, keep=True)
    sending = sender(pool)
    sending.send(Hint("jobs"))
    await sending.close()
    assert len(fresh.sent) == 1


async def test_hints_never_fail_or_keep_trying_while_there_is_no_connection() -> None:
    tries = 0

    async def refuse() -> PostgresConnection:
        nonlocal tries
        tries += 1
        raise StoreUnavailable

    sending = sender(ConnectionPool(refuse, size=1))
    with one_moment():
        for _ in range(100):
            sending.send(Hint("jobs"))
            await rounds(1)
    assert tries == 1


async def test_nothing_is_sent_after_the_end() -> None:
    connection = FakeConnection()
    sending = notifier(connection)
    await sending.close()
    sending.send(Hint("jobs"))
    await rounds(10)
    assert connection.sent == []
