"""Sends hints to other processes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import asyncpg
import msgspec

from duetime.errors import DuetimeError
from duetime.stores.base import Hint
from duetime.stores.sql.pooled.pool import Pool
from duetime.stores.sql.postgres.connect import Connection

_SPACING: Final = 0.002
"""The shortest time between two notifications of one process, in seconds."""
_LULL: Final = 1.0
"""How long nothing is tried after a notification could not be sent, in seconds."""
_FLUSH: Final = 1.0
_MOST_HINTS: Final = 200
_LONGEST: Final = 7_999
"""PostgreSQL's bound for what a notification carries, in bytes."""

_ANY: Final = Hint("any")
_Message = tuple[str, list[Hint]]


def channel(namespace: str) -> str:
    """Return the name under which the processes of a namespace hear each other."""
    return f"{namespace}_hints"


def encode(sender: str, hints: list[Hint]) -> str:
    """Write hints down, or `any` in their place when they are too many for one notification."""
    text = msgspec.json.encode((sender, hints)).decode()
    return text if len(text.encode()) <= _LONGEST else encode(sender, [_ANY])


def decode(text: object, *, own: str) -> list[Hint]:
    """Read hints; none of our own, and `any` for what other software sent."""
    try:
        sender, hints = msgspec.json.decode(str(text), type=_Message)
    except msgspec.MsgspecError:
        return [_ANY]
    return [] if sender == own else hints


class Notifier:
    """Sends what it is given at once, and then in groups with a pause between them.

    Not with the commit that it tells of: commits that carry a notification wait for each other, in the whole server
    and until each of them is on the disk. It never makes its caller wait or fail: while there is no connection, hints
    are dropped, as hints may be. They take connections of the verbs that nobody uses; a verb that wants the same one at
    that moment, and no other is left, waits for the notification.
    """

    def __init__(
        self, pool: Pool[Connection], *, channel: str, sender: str, verbs: Pool[Connection] | None = None
    ) -> None:
        self._pool = pool
        self._verbs = verbs
        """Whose unused connections are taken while ours is not open."""
        self._channel = channel
        self._sender = sender
        self._pending: dict[Hint, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._next_at = 0.0
        self._closed = False

    def send(self, hint: Hint) -> None:
        """Have a hint sent soon."""
        if self._closed:
            return
        self._pending[hint] = None
        if len(self._pending) > _MOST_HINTS:
            self._pending = {_ANY: None}
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
            sent = await self._notify(encode(self._sender, list(hints)))
            self._next_at = loop.time() + (_SPACING if sent else _LULL)

    async def _notify(self, text: str) -> bool:
        # No hint waits for a connection to be opened, which takes longer than all the rest, where one is to be had; but
        # one that lay unused may have died.
        for pool in (self._pool, self._verbs):
            if pool is not None and (unused := pool.unused()) and await self._send(pool, unused, text):
                return True
        try:
            return await self._send(self._pool, await self._pool.acquire(), text)
        except DuetimeError:
            return False

    async def _send(self, pool: Pool[Connection], connection: Connection, text: str) -> bool:
        keep = False
        try:
            # A plain query, because poolers mix up prepared ones, of commands, which need no plan: half of what it takes
            # to select `pg_notify`. Nobody waits for the disk on account of a hint.
            await connection.execute(
                f'SET LOCAL synchronous_commit TO off; NOTIFY "{self._channel}", {_quoted(text)}'
            )
            keep = True
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            pass
        finally:
            pool.release(connection, keep=keep)
        return keep


def _quoted(text: str) -> str:
    """Write a text as a literal that is read the same under every setting of the server."""
    doubled = text.replace("'", "''").replace("\\", "\\\\")
    return f"E'{doubled}'"
