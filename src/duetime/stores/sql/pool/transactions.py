"""Transactions on pooled connections: a caller's own, and those that handlers work in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Generic, NoReturn, TypeVar

from duetime.errors import StoreError
from duetime.failpoints import failpoint
from duetime.model.ids import new_token
from duetime.model.time import Clock, Micros
from duetime.stores.sql.driver import Script
from duetime.stores.sql.pool.connection import C, Connector, LendingConnector
from duetime.stores.sql.pool.connection_pool import ConnectionPool
from duetime.stores.sql.transactions.caller import (
    SAVEPOINT,
    another_database,
    connection_gone,
    needs_event_loop,
    no_transaction,
    rolled_back_by_server,
    transaction_aborted,
)

T = TypeVar("T")


class PooledCallerTransaction(Generic[C]):
    """Runs scripts on the caller's connection."""

    def __init__(self, tx: object, connection: C, connector: Connector[C], *, clock: Clock | None) -> None:
        if connection.is_closed():
            raise connection_gone()
        if not connection.is_in_transaction():
            raise no_transaction(connector.how)
        self._tx = tx
        self._connection = connection
        self._connector = connector
        self._clock = clock
        self.announces = connector.announces

    async def run(self, script: Callable[[], Script[T]]) -> T:
        """Run a script inside the transaction."""
        connection = self._connection
        with self._connector.errors():
            try:
                await connection.execute(f"SAVEPOINT {SAVEPOINT}")
            except Exception as error:
                if self._connector.judge.is_aborted(error):
                    raise transaction_aborted() from error
                raise
            try:
                answer = await self._connector.play(connection, script(), self._clock)
            except BaseException as error:
                await self._take_back(error)
                if self._connector.judge.misses_table(error):
                    raise another_database() from error
                raise
            await connection.execute(f"RELEASE SAVEPOINT {SAVEPOINT}")
        return answer

    async def _take_back(self, cause: BaseException) -> None:
        """Undo what a script has done; raise `InvalidTransaction` where the server has undone more than that."""
        connection = self._connection
        try:
            await connection.execute(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
            await connection.execute(f"RELEASE SAVEPOINT {SAVEPOINT}")
        except Exception as error:  # noqa: BLE001 -- what has failed before says more
            if not self._connector.judge.misses_savepoint(error):
                return
            with suppress(Exception):
                # Nothing is left to roll back, but only an answer tells the driver that no transaction is open.
                await connection.execute("ROLLBACK")
            raise rolled_back_by_server(cause) from cause

    def run_blocking(self, script: Callable[[], Script[T]]) -> NoReturn:
        """Refuse: this connection lives in an event loop."""
        del script
        raise needs_event_loop(self._tx)


class PooledHandlerTransaction(Generic[C]):
    """Tells by a savepoint at its beginning whether it is still the transaction that was begun.

    The connection is closed at the end: nothing else undoes all that a handler can have set.
    """

    blocking = False
    expired = False

    def __init__(
        self, pool: ConnectionPool[C], connector: LendingConnector[C], *, clock: Clock | None, timeout: Micros
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
