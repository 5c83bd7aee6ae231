"""A handler's transaction, on a connection that is kept for lending."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from duetime.errors import StoreError
from duetime.failpoints import failpoint
from duetime.model.clock import Clock
from duetime.model.ids import new_token
from duetime.model.instants import Micros
from duetime.stores.sql.driver import Script
from duetime.stores.sql.pooled.connection import C, LendingConnector
from duetime.stores.sql.pooled.pool import Pool

T = TypeVar("T")


class PooledLent(Generic[C]):
    """Tells by a savepoint at its beginning whether it is still the transaction that was begun.

    The connection is closed at the end: nothing else undoes all that a handler can have set.
    """

    blocking = False
    expired = False

    def __init__(
        self, pool: Pool[C], connector: LendingConnector[C], *, clock: Clock | None, timeout: Micros
    ) -> None:
        self._pool = pool
        self._connector = connector
        self._clock = clock
        self._timeout = timeout
        self._mark = f"duetime_{new_token()}"
        self._connection: C | None = None

    async def begin(self) -> object:
        """Begin on a connection of the pool."""
        with self._connector.errors():
            self._connection = connection = await self._pool.acquire()
            try:
                async with self._connector.patience.one_try():
                    await self._connector.bound(connection, self._timeout)
                    await connection.execute(self._connector.begin)
                    await connection.execute(f"SAVEPOINT {self._mark}")
            except BaseException:
                self._give_back()
                raise
        return self._connector.handed_out(connection)

    async def is_whole(self) -> bool:
        """Let go of the savepoint that stands at the beginning: it is gone if the transaction has been ended."""
        return await self._at_mark("RELEASE SAVEPOINT")

    async def run(self, script: Callable[[], Script[T]]) -> T:
        """Run a script inside the transaction."""
        with self._connector.errors():
            async with self._connector.patience.one_try():
                return await self._connector.play(self._open(), script(), self._clock)

    async def commit(self) -> None:
        """Commit and take the connection back."""
        try:
            with self._connector.errors():
                failpoint("before:transaction")
                async with self._connector.patience.one_try():
                    await self._open().execute("COMMIT")
                failpoint("after:transaction")
        finally:
            self._give_back()

    async def rollback(self, cause: BaseException | None = None) -> bool:
        """Undo everything and take the connection back."""
        del cause
        try:
            return await self._at_mark("ROLLBACK TO SAVEPOINT")
        except StoreError:
            # The server rolls back what is left of a connection that is gone.
            return True
        finally:
            self._give_back()

    async def _at_mark(self, verb: str) -> bool:
        connection = self._open()
        if self._connector.was_closed_by_hand(connection):
            return False
        with self._connector.errors():
            try:
                async with self._connector.patience.one_try():
                    await connection.execute(f"{verb} {self._mark}")
            except Exception as error:
                if not self._connector.judge.misses_savepoint(error):
                    raise
                return False
        return True

    def _open(self) -> C:
        if self._connection is None:
            raise StoreError("the transaction has ended")
        return self._connection

    def _give_back(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection, keep=False)
