"""Sends hints to other processes."""

from __future__ import annotations

import asyncpg

from duetime.errors import DuetimeError
from duetime.stores.base.silence import Patience
from duetime.stores.sql.pooled.hints import Sender
from duetime.stores.sql.pooled.pool import Pool
from duetime.stores.sql.postgres.connect import Connection


def channel(namespace: str) -> str:
    """Return the name under which the processes of a namespace hear each other."""
    return f"{namespace}_hints"


class Notifier(Sender):
    """Sends notifications.

    Not with the commit that they tell of: commits that carry a notification wait for each other, in the whole server
    and until each of them is on the disk. They take connections of the verbs that nobody uses; a verb that wants the
    same one at that moment, and no other is left, waits for the notification.
    """

    spacing = 0.002
    longest = 0.004

    def __init__(
        self,
        pool: Pool[Connection],
        *,
        patience: Patience | None = None,
        channel: str,
        sender: str,
        verbs: Pool[Connection] | None = None,
    ) -> None:
        super().__init__(sender)
        self._pool = pool
        self._patience = patience or Patience()
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

    async def _send(self, pool: Pool[Connection], connection: Connection, text: str) -> bool:
        keep = False
        try:
            # A plain query, because poolers mix up prepared ones, of commands, which need no plan: half of what it takes
            # to select `pg_notify`. Nobody waits for the disk on account of a hint.
            async with self._patience.one_try(repeatable=True):
                await connection.execute(
                    f'SET LOCAL synchronous_commit TO off; NOTIFY "{self._channel}", {_quoted(text)}'
                )
            keep = True
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            self._patience.heed(error)
        finally:
            pool.release(connection, keep=keep)
        return keep


def _quoted(text: str) -> str:
    """Write a text as a literal that is read the same under every setting of the server."""
    doubled = text.replace("'", "''").replace("\\", "\\\\")
    return f"E'{doubled}'"
