"""Marks that others can look for, and that go when this process or its connection does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

import asyncpg

from duetime.errors import StoreError
from duetime.stores.sql.pooled.pool import Pool, pauses
from duetime.stores.sql.postgres.connect import Connection, Connector

_TAKE: Final = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))"
# Heartbeats go over this connection: for one statement in ten seconds, to plan it takes longer than to run it.
_PLAN_ONCE: Final = "SET plan_cache_mode = force_generic_plan"


class Marks:
    """Session locks, one per name, on the only connection of a pool, taken again whenever that is made anew."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._names: set[str] = set()
        self._missing: set[str] = set()
        self._restoring: asyncio.Task[None] | None = None
        self._closed = False
        self.pool: Pool[Connection] = Pool(self._connect, size=1)

    async def take(self, connection: Connection, name: str) -> bool:
        """Set a mark; False where sessions are not ours or somebody else has this very mark."""
        if self._connector.pooled or not await connection.fetchval(_TAKE, name):
            return False
        self._names.add(name)
        return True

    async def close(self) -> None:
        """Give up all marks together with the connection."""
        self._closed = True
        if self._restoring is not None:
            self._restoring.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._restoring
        await self.pool.close()

    async def _connect(self) -> Connection:
        connection = await self._connector.connect()
        if not self._connector.pooled:
            await connection.execute(_PLAN_ONCE)
        self._missing = set(self._names)
        connection.add_termination_listener(self._lose)
        return connection

    async def _take_missing(self, connection: Connection) -> None:
        for name in tuple(self._missing):
            if await connection.fetchval(_TAKE, name):
                self._missing.discard(name)

    def _lose(self, _connection: Any) -> None:
        # At once, not when the connection is next used: until then, others take this process for dead.
        if self._names and not self._closed and (self._restoring is None or self._restoring.done()):
            self._restoring = asyncio.get_running_loop().create_task(
                self._restore(), name="duetime-restore-marks"
            )

    async def _restore(self) -> None:
        for pause in pauses():
            with contextlib.suppress(StoreError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                if await self._restored():
                    return
            await asyncio.sleep(pause)

    async def _restored(self) -> bool:
        """Connect if need be; False while the server has not yet noticed that the old session is gone."""
        connection = await self.pool.acquire()
        keep = False
        try:
            await self._take_missing(connection)
            keep = True
        finally:
            self.pool.release(connection, keep=keep)
        return not self._missing
