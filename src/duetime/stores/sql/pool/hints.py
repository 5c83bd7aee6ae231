"""Hints between processes: as texts, what sends them, and what hears them."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic

import msgspec

from duetime.errors import DuetimeError, StoreError
from duetime.model.time import Clock
from duetime.stores.base import Hint
from duetime.stores.base.backoff import backoff
from duetime.stores.sql.pool.connections import C, ConnectionPool, Connector

_PAUSE_AFTER_FAILURE: Final = 1.0
"""How long nothing is tried after hints could not be sent, in seconds."""
_TRIES: Final = 2
"""One for a connection that died while it was unused, and one for a new one."""
_FLUSH: Final = 1.0
_FEW: Final = 2
"""Of how many calls a message may tell before the next one waits longer."""
_LONGEST_MESSAGE: Final = 7_999
"""PostgreSQL's bound for what a notification carries, in bytes."""

ANY_HINT: Final = Hint("any")
_Message = tuple[str, list[Hint]]


def encode_hints(sender: str, hints: list[Hint]) -> str:
    """Write hints down, or `any` in their place when they are too many for one message."""
    text = msgspec.json.encode((sender, hints)).decode()
    return text if len(text.encode()) <= _LONGEST_MESSAGE else encode_hints(sender, [ANY_HINT])


def decode_hints(text: object, *, own: str) -> list[Hint]:
    """Read hints; none of our own, and `any` for what other software sent."""
    try:
        sender, hints = msgspec.json.decode(str(text), type=_Message)
    except msgspec.MsgspecError:
        return [ANY_HINT]
    return [] if sender == own else hints


class HintSender(ABC, Generic[C]):
    """Sends what it is given at once, and then in groups with a pause between them.

    It never makes its caller wait or fail: while there is no connection, hints are dropped, as hints may be.
    """

    spacing: float
    """The shortest time between two messages of one process, in seconds."""
    longest: float
    """The same where many calls give hints one after the other: it doubles as long as each message tells of several."""

    def __init__(
        self, connector: Connector[C], pool: ConnectionPool[C], *, namespace: str, name: str
    ) -> None:
        """`name` is ours, so that we can tell our own hints."""
        self._connector = connector
        self._pool = pool
        self._namespace = namespace
        self._name = name
        self._pending: dict[Hint, None] = {}
        self._calls = 0
        """How many hints were given since the last message."""
        self._pause = self.spacing
        self._task: asyncio.Task[None] | None = None
        self._next_at = 0.0
        self._closed = False

    def send(self, hint: Hint) -> None:
        """Have a hint sent soon."""
        if self._closed:
            return
        self._pending[hint] = None
        self._calls += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="duetime-notify")

    async def close(self) -> None:
        """Send what is left, unless that takes long; afterwards nothing is sent."""
        self._closed = True
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=_FLUSH)
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._pending:
            if (pause := self._next_at - loop.time()) > 0:
                await asyncio.sleep(pause)
            hints, self._pending = self._pending, {}
            calls, self._calls = self._calls, 0
            sent = await self._deliver(encode_hints(self._name, list(hints)))
            self._pause = min(self._pause * 2, self.longest) if calls > _FEW else self.spacing
            self._next_at = loop.time() + (self._pause if sent else _PAUSE_AFTER_FAILURE)

    async def _deliver(self, text: str) -> bool:
        """Send a text to all processes that listen; False if that did not work."""
        connector, pool = self._connector, self._pool
        for _ in range(_TRIES):
            try:
                connection = await pool.acquire()
            except DuetimeError:
                break
            sent = False
            try:
                async with connector.timeouts.one_try(repeatable=True):
                    await self._tell(connection, text)
                sent = True
            except Exception as error:  # noqa: BLE001 -- no one waits for an answer; hints may be lost
                connector.timeouts.heed(error)
                if not connector.errors.is_lost(error):
                    break
                pool.clear()
            finally:
                pool.release(connection, keep=sent)
            if sent:
                return True
        return False

    @abstractmethod
    async def _tell(self, connection: C, text: str) -> None:
        """Send a text over a connection."""


class HintConnection(ABC, Generic[C]):
    """One connection that hears the hints of other processes, made anew whenever it is lost."""

    def __init__(
        self,
        connector: Connector[C],
        on_hint: Callable[[Hint], None],
        *,
        namespace: str,
        name: str,
        clock: Clock | None = None,
    ) -> None:
        """`name` is ours, so that we can tell our own hints; `clock`: the store's, where the database has none of its own."""
        self._connector = connector
        self._namespace = namespace
        self._name = name
        self._clock = clock
        self._on_hint = on_hint
        self._failures = 0
        self.up = False
        """Whether hints of others arrive at present."""

    @abstractmethod
    async def _hear(self, connection: C) -> bool:
        """Listen until the connection is lost; False if nothing can be heard there."""

    async def run(self) -> None:
        """Listen until cancelled, or return at once where nothing can be heard.

        Gives the hint `any` whenever listening begins or breaks off: hints may have been missed, and
        workers that rely on them must know that they do not arrive.
        """
        listens = True
        while listens:
            with contextlib.suppress(StoreError):
                try:
                    listens = await self._listen()
                finally:
                    if self.up:
                        self.report(up=False)
            await asyncio.sleep(backoff(self._failures, first=0.05))
            self._failures += 1

    async def _listen(self) -> bool:
        with self._connector.errors:
            connection = await self._connector.connect()
            try:
                return await self._hear(connection)
            finally:
                connection.terminate()

    def report(self, *, up: bool) -> None:
        """Tell workers that listening begins or breaks off."""
        self.up = up
        self._on_hint(ANY_HINT)

    def reset_backoff(self) -> None:
        """Reconnect soon when the connection is lost: this one has worked."""
        self._failures = 0
