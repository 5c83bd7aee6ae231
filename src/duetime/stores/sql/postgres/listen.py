"""Hears the hints of other processes."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any, Final

import asyncpg

from duetime.errors import StoreError
from duetime.stores.base import Hint
from duetime.stores.sql.pooled.hints import decode
from duetime.stores.sql.pooled.pool import pauses
from duetime.stores.sql.postgres.connect import Connection, Connector

_CHECK: Final = 30.0
"""How often a quiet connection is checked, in seconds: one that was cut without a word looks like a quiet one."""
_CHECK_TIMEOUT: Final = 5.0


class Listener:
    """One connection that listens, made anew whenever it is lost."""

    def __init__(
        self, connector: Connector, *, channel: str, sender: str, on_hint: Callable[[Hint], None]
    ) -> None:
        self._connector = connector
        self._channel = channel
        self._sender = sender
        self._on_hint = on_hint
        self._pauses = pauses()
        self.up = False
        """Whether hints of others arrive at present."""

    async def run(self) -> None:
        """Listen until cancelled, or return at once behind a pooler, through which nothing can be heard.

        Gives the hint `any` whenever listening begins or breaks off: something may have been missed, and
        whoever relied on hearing must know that it does not.
        """
        while not self._connector.pooled:
            with contextlib.suppress(StoreError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await self._listen()
            await asyncio.sleep(next(self._pauses))

    async def _listen(self) -> None:
        patience = self._connector.patience
        connection = await self._connector.connect()
        gone = asyncio.Event()
        forget = patience.watch(gone.set)
        try:
            if self._connector.pooled:
                return
            connection.add_termination_listener(lambda _: gone.set())
            async with patience.one_try():
                await connection.add_listener(self._channel, self._hear)
            self._pauses = pauses()
            self._turn(up=True)
            await _check_until(gone, connection)
        except TimeoutError as error:
            patience.heed(error)
            raise
        finally:
            forget()
            if self.up:
                self._turn(up=False)
            connection.terminate()

    def _turn(self, *, up: bool) -> None:
        self.up = up
        self._on_hint(Hint("any"))

    def _hear(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        for hint in decode(payload, own=self._sender):
            self._on_hint(hint)


async def _check_until(gone: asyncio.Event, connection: Connection) -> None:
    """Return when the connection is gone; raise when it does not answer any more."""
    while not gone.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CHECK * random.uniform(0.8, 1.2)):
                await gone.wait()
                return
        await connection.execute("SELECT 1", timeout=_CHECK_TIMEOUT)
