"""Sends hints to other processes by notifications, and hears theirs."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any, Final

from duetime.stores.sql.pool.hints import HintConnection, HintSender, decode_hints
from duetime.stores.sql.postgres.connection import PostgresConnection

_CHECK_INTERVAL: Final = 30.0
"""How often a quiet connection is checked, in seconds: one that was cut without a word looks like a quiet one."""
_CHECK_TIMEOUT: Final = 5.0


def channel_name(namespace: str) -> str:
    """Return the name under which the processes of a namespace hear each other."""
    return f"{namespace}_hints"


class NotificationSender(HintSender[PostgresConnection]):
    """Sends notifications.

    Not with the commit that they tell of: commits that carry a notification wait for each other, in the whole server
    and until each of them is on the disk. They take a connection of the verbs, like one of them.
    """

    spacing = 0.002
    longest = 0.004

    async def _tell(self, connection: PostgresConnection, text: str) -> None:
        # A plain query, because poolers mix up prepared ones, of commands, which need no plan: half of what it takes
        # to select `pg_notify`. No one waits for the disk because of a hint.
        channel = channel_name(self._namespace)
        await connection.execute(f'SET LOCAL synchronous_commit TO off; NOTIFY "{channel}", {_quoted(text)}')


def _quoted(text: str) -> str:
    """Write a text as a literal that is read the same under every setting of the server."""
    doubled = text.replace("'", "''").replace("\\", "\\\\")
    return f"E'{doubled}'"


class NotificationListener(HintConnection[PostgresConnection]):
    """One connection that listens; behind a pooler nothing can be heard."""

    async def _hear(self, connection: PostgresConnection) -> bool:
        if self._connector.pooled:
            return False
        timeouts = self._connector.timeouts
        gone = asyncio.Event()
        unwatch = timeouts.watch(gone.set)
        try:
            connection.add_termination_listener(lambda _: gone.set())
            async with timeouts.one_try():
                await connection.add_listener(channel_name(self._namespace), self._receive)
            self.reset_backoff()
            self.report(up=True)
            await _check_until(gone, connection)
        except TimeoutError as error:
            timeouts.heed(error)
            raise
        finally:
            unwatch()
        return True

    def _receive(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        for hint in decode_hints(payload, own=self._name):
            self._on_hint(hint)


async def _check_until(gone: asyncio.Event, connection: PostgresConnection) -> None:
    """Return when the connection is gone; raise when it does not answer any more."""
    while not gone.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CHECK_INTERVAL * random.uniform(0.8, 1.2)):
                await gone.wait()
                return
        await connection.execute("SELECT 1", timeout=_CHECK_TIMEOUT)
