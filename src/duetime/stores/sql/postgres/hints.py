"""Sends hints to other processes by notifications, and hears theirs."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any, Final

import asyncpg

from duetime.errors import DuetimeError
from duetime.stores.base import Hint
from duetime.stores.base.timeouts import ServerTimeouts
from duetime.stores.sql.pool.connection_pool import ConnectionPool
from duetime.stores.sql.pool.hints import HintListener, HintSender, decode_hints
from duetime.stores.sql.postgres.connection import PostgresConnection, PostgresConnector

_CHECK_INTERVAL: Final = 30.0
"""How often a quiet connection is checked, in seconds: one that was cut without a word looks like a quiet one."""
_CHECK_TIMEOUT: Final = 5.0


def channel_name(namespace: str) -> str:
    """Return the name under which the processes of a namespace hear each other."""
    return f"{namespace}_hints"


class NotificationSender(HintSender):
    """Sends notifications.

    Not with the commit that they tell of: commits that carry a notification wait for each other, in the whole server
    and until each of them is on the disk. They take unused connections of the verbs; a verb that wants the same
    one at that moment, and no other is left, waits for the notification.
    """

    spacing = 0.002
    longest = 0.004

    def __init__(
        self,
        pool: ConnectionPool[PostgresConnection],
        *,
        timeouts: ServerTimeouts | None = None,
        channel: str,
        sender: str,
        verbs: ConnectionPool[PostgresConnection] | None = None,
    ) -> None:
        super().__init__(sender)
        self._pool = pool
        self._timeouts = timeouts or ServerTimeouts()
        self._verbs = verbs
        """Whose unused connections are taken while ours is not open."""
        self._channel = channel

    async def _deliver(self, text: str) -> bool:
        # No hint waits for a connection to be opened, which takes longer than all the rest, where one is to be had; but
        # one that lay unused may have died.
        for pool in (self._pool, self._verbs):
            if pool is not None and (unused := pool.unused()) and await self._send(pool, unused, text):
                return True
        try:
            return await self._send(self._pool, await self._pool.acquire(), text)
        except DuetimeError:
            return False

    async def _send(
        self, pool: ConnectionPool[PostgresConnection], connection: PostgresConnection, text: str
    ) -> bool:
        keep = False
        try:
            # A plain query, because poolers mix up prepared ones, of commands, which need no plan: half of what it takes
            # to select `pg_notify`. No one waits for the disk because of a hint.
            async with self._timeouts.one_try(repeatable=True):
                await connection.execute(
                    f'SET LOCAL synchronous_commit TO off; NOTIFY "{self._channel}", {_quoted(text)}'
                )
            keep = True
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            self._timeouts.heed(error)
        finally:
            pool.release(connection, keep=keep)
        return keep


def _quoted(text: str) -> str:
    """Write a text as a literal that is read the same under every setting of the server."""
    doubled = text.replace("'", "''").replace("\\", "\\\\")
    return f"E'{doubled}'"


class NotificationListener(HintListener):
    """One connection that listens; behind a pooler nothing can be heard."""

    def __init__(
        self, connector: PostgresConnector, *, channel: str, sender: str, on_hint: Callable[[Hint], None]
    ) -> None:
        super().__init__(on_hint)
        self._connector = connector
        self._channel = channel
        self._sender = sender

    async def _listen(self) -> bool:
        timeouts = self._connector.timeouts
        with self._connector.errors:
            if self._connector.pooled:
                return False
            connection = await self._connector.connect()
            gone = asyncio.Event()
            unwatch = timeouts.watch(gone.set)
            try:
                if self._connector.pooled:
                    return False
                connection.add_termination_listener(lambda _: gone.set())
                async with timeouts.one_try():
                    await connection.add_listener(self._channel, self._receive)
                self.restart_delays()
                self.report(up=True)
                await _check_until(gone, connection)
            except TimeoutError as error:
                timeouts.heed(error)
                raise
            finally:
                unwatch()
                connection.terminate()
        return True

    def _receive(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        for hint in decode_hints(payload, own=self._sender):
            self._on_hint(hint)


async def _check_until(gone: asyncio.Event, connection: PostgresConnection) -> None:
    """Return when the connection is gone; raise when it does not answer any more."""
    while not gone.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CHECK_INTERVAL * random.uniform(0.8, 1.2)):
                await gone.wait()
                return
        await connection.execute("SELECT 1", timeout=_CHECK_TIMEOUT)
