"""A caller's transaction on an asyncpg connection."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeVar, cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from duetime.errors import InvalidTransaction
from duetime.model.clock import Clock
from duetime.stores.sql.borrowing import SAVEPOINT, aborted, another_database, needs_loop, no_transaction
from duetime.stores.sql.driver import Script
from duetime.stores.sql.postgres.connect import Connection, Connector
from duetime.stores.sql.postgres.play import play

T = TypeVar("T")


class BorrowedPostgres:
    """Runs scripts on the caller's connection, which may be one that a pool has handed out."""

    announces = True

    def __init__(
        self,
        tx: asyncpg.Connection[Any] | PoolConnectionProxy[Any],
        *,
        connector: Connector,
        clock: Clock | None,
    ) -> None:
        # What a pool has handed out loses its connection when it is given back.
        inner: object = getattr(tx, "_con", None) if isinstance(tx, PoolConnectionProxy) else tx
        if inner is None or tx.is_closed():
            raise InvalidTransaction("tx is closed, or was given back to its pool")
        if not tx.is_in_transaction():
            raise no_transaction("use it inside `async with connection.transaction():`")
        self._connection = cast("Connection", inner)
        self._connector = connector
        self._clock = clock

    async def run(self, script: Callable[[], Script[T]]) -> T:
        """Run a script inside the transaction."""
        connection = self._connection
        with self._connector.errors():
            try:
                await connection.execute(f"SAVEPOINT {SAVEPOINT}")
            except asyncpg.InFailedSQLTransactionError as error:
                raise aborted() from error
            try:
                answer = await play(connection, script(), self._clock)
            except BaseException as error:
                with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                    await connection.execute(f"ROLLBACK TO {SAVEPOINT}; RELEASE {SAVEPOINT}")
                if isinstance(error, asyncpg.UndefinedTableError | asyncpg.UndefinedColumnError):
                    raise another_database() from error
                raise
            await connection.execute(f"RELEASE {SAVEPOINT}")
        return answer

    def run_blocking(self, script: Callable[[], Script[T]]) -> NoReturn:
        """Refuse: this connection lives in an event loop."""
        del script
        raise needs_loop(self._connection)
