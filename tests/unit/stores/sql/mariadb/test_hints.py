from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from duetime.errors import StoreError
from duetime.model.time import Clock
from duetime.stores.base import Hint
from duetime.stores.base.timeouts import ServerTimeouts
from duetime.stores.sql.driver import Row, Script
from duetime.stores.sql.mariadb.hints import HintRowSender, HintRowWatcher
from duetime.stores.sql.pool import hints as listening
from duetime.stores.sql.pool.connections import ConnectionPool
from duetime.stores.sql.pool.hints import encode_hints

NOTHING: Row = (0, False, False, None, None, None)
DUE: Row = (99, True, False, None, None, None)
EMPTIED: Row = (0, False, True, None, None, None)


class Connection:
    def __init__(self, *, carries: bool) -> None:
        self.variant = SimpleNamespace(carries_hints=carries)

    def terminate(self) -> None: ...

    def is_closed(self) -> bool:
        return False


class Server:
    """Answers each look with what was prepared, and then not at all."""

    def __init__(self, *answers: list[Row] | StoreError, carries: bool = True) -> None:
        self._answers = iter(answers)
        self._carries = carries
        self.timeouts = ServerTimeouts()
        self.errors = nullcontext()
        self.asked: list[dict[str, Any]] = []

    async def connect(self) -> Connection:
        return Connection(carries=self._carries)

    async def play(self, _connection: object, script: Script[list[Row]], _clock: Clock | None) -> list[Row]:
        self.asked.append(dict(next(script).params))
        answer = next(self._answers, None)
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, StoreError):
            raise answer
        return answer or []


async def heard_from(server: Any, *, looks: int) -> list[Hint]:
    hints: list[Hint] = []
    watcher: HintRowWatcher = HintRowWatcher(server, hints.append, namespace="duetime", name="me")
    running = asyncio.create_task(watcher.run())
    async with asyncio.timeout(5):
        while len(server.asked) <= looks:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert watcher.up
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not watcher.up
    return hints


def said(slot: int, told: int, *hints: Hint, by: str = "you") -> Row:
    return (0, False, True, slot, told, encode_hints(by, list(hints)))


@pytest.mark.parametrize(
    ("before", "found", "expected"),
    [
        (NOTHING, said(3, 1, Hint("schedules")), [Hint("schedules")]),
        (said(3, 7, Hint("jobs")), said(3, 8, Hint("schedules")), [Hint("schedules")]),
        (said(3, 7, Hint("jobs")), said(3, 9, Hint("schedules")), [Hint("any")]),
        (said(3, 7, Hint("jobs")), said(3, 7, Hint("jobs")), []),
        (NOTHING, said(3, 1, Hint("schedules"), by="me"), []),
        (NOTHING, DUE, [Hint("jobs")]),
    ],
    ids=["first of a row", "next", "some overwritten", "known", "our own", "a job fell due"],
)
async def test_what_is_new_is_heard_once(before: Row, found: Row, expected: list[Hint]) -> None:
    any_hint = Hint("any")
    hints = await heard_from(Server([before], [found]), looks=2)
    assert hints == [any_hint, *expected, any_hint], "between the hints that listening begins and ends"


async def test_a_look_begins_where_the_last_one_ended() -> None:
    server = Server([said(3, 7, Hint("jobs"))], [DUE], [EMPTIED])
    await heard_from(server, looks=3)
    assert [(look["heard"], look["due"]) for look in server.asked] == [(-1, 0), (7, 0), (7, 99), (0, 0)]


async def test_the_server_looks_more_often_once_something_was_heard() -> None:
    server = Server([NOTHING], [NOTHING], [said(3, 1, Hint("jobs"))], [NOTHING])
    await heard_from(server, looks=4)
    _, quiet, still, busy, again = [look["pace"] for look in server.asked]
    assert busy < quiet == still == again


async def test_each_try_comes_later_until_the_server_has_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[int] = []

    def no_pause(failed: int, *, first: float) -> float:
        assert first > 0
        failures.append(failed)
        return 0.0

    monkeypatch.setattr(listening, "backoff", no_pause)
    refused = StoreError("get_lock is not allowed here")
    server = Server([NOTHING], refused, [NOTHING], refused, [NOTHING], [NOTHING], refused, [NOTHING])
    await heard_from(server, looks=8)
    assert failures == [0, 1, 0]


async def test_where_no_statement_can_wait_nothing_is_said_and_nothing_heard() -> None:
    server: Any = Server(carries=False)
    heard: list[Hint] = []
    watcher: HintRowWatcher = HintRowWatcher(server, heard.append, namespace="duetime", name="me")
    async with asyncio.timeout(5):
        await watcher.run()
    pool: ConnectionPool[Any] = ConnectionPool(server.connect, size=1)
    writer = HintRowSender(server, pool, namespace="duetime", name="1f")
    writer.send(Hint("jobs"))
    await writer.close()
    assert server.asked == heard == []
