"""A caller's transaction on a connection of the caller's own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Generic, NoReturn, TypeVar

from duetime.model.clock import Clock
from duetime.stores.sql.borrowing import (
    SAVEPOINT,
    aborted,
    another_database,
    gone,
    needs_loop,
    no_transaction,
    undone,
)
from duetime.stores.sql.driver import Script
from duetime.stores.sql.pooled.connection import C, Connector

T = TypeVar("T")


class PooledBorrowed(Generic[C]):
    """Runs scripts on the caller's connection."""

    def __init__(self, tx: object, connection: C, connector: Connector[C], *, clock: Clock | None) -> None:
        if connection.is_closed():
            raise gone()
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
                    raise aborted() from error
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
            raise undone(cause) from cause

    def run_blocking(self, script: Callable[[], Script[T]]) -> NoReturn:
        """Refuse: this connection lives in an event loop."""
        del script
        raise needs_loop(self._tx)
