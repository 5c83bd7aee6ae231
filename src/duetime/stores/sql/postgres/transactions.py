"""A handler's transaction on PostgreSQL, on a connection that is kept for lending."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from duetime.model.time import MILLISECOND, Clock, Micros
from duetime.stores.sql.pool.connection_pool import ConnectionPool
from duetime.stores.sql.pool.transactions import PooledHandlerTransaction
from duetime.stores.sql.postgres.connection import STATEMENT_TIMEOUT, PostgresConnection, PostgresConnector

if TYPE_CHECKING:
    _DriverConnection = asyncpg.Connection[asyncpg.Record]
else:
    _DriverConnection = asyncpg.Connection

_GRACE: Final = 5_000
"""How much later than we the server ends a transaction, in milliseconds."""


class LendableConnection(_DriverConnection):
    """Remembers what the handler has done to it that it does not show."""

    closed_by_hand = False
    """It looks like a lost connection otherwise."""
    altered = False
    """Whether it reads or writes values in another way now, which cannot be undone."""

    async def close(self, *, timeout: float | None = None) -> None:
        """Close it."""
        self.closed_by_hand = True
        await super().close(timeout=timeout)

    def terminate(self) -> None:
        """Close it at once."""
        self.closed_by_hand = True
        super().terminate()

    async def set_type_codec(self, *args: Any, **options: Any) -> None:
        """Change how values of a type are read and written."""
        self.altered = True
        await super().set_type_codec(*args, **options)

    async def set_builtin_type_codec(self, *args: Any, **options: Any) -> None:
        """Change it to a way that is built in."""
        self.altered = True
        await super().set_builtin_type_codec(*args, **options)

    def get_reset_query(self) -> str:
        """Return what undoes all that outlives a transaction."""
        return f"{super().get_reset_query()} RESET SESSION AUTHORIZATION; DISCARD TEMP; DISCARD SEQUENCES"


class PostgresHandlerTransaction(PooledHandlerTransaction[PostgresConnection]):
    """Begins as asyncpg does, so that a handler can nest transactions as usual."""

    after_release = "; RESET search_path; RESET ROLE"
    """So that the settlement finds our tables, and may write to them, whatever the handler has set."""

    def __init__(
        self,
        pool: ConnectionPool[PostgresConnection],
        connector: PostgresConnector,
        *,
        clock: Clock | None,
        timeout: Micros,
    ) -> None:
        super().__init__(pool, connector, clock=clock, timeout=timeout)
        self._postgres = connector
        self._handed_out: Any = None
        self._transaction: Any = None

    async def _start(self, connection: PostgresConnection) -> object:
        self._transaction = connection.transaction(isolation="read_committed")
        await self._transaction.start()
        await connection.execute(f"{self._postgres.local_bounds}{self._bounds()}SAVEPOINT {self._mark}")
        # As with a pool of asyncpg, what the handler has cannot be used any more once it is given back.
        self._handed_out = PoolConnectionProxy(cast("Any", None), connection)
        return cast("object", self._handed_out)

    def _bounds(self) -> str:
        """Return what makes the server end the transaction when we cannot, and not before."""
        longest = self._timeout // MILLISECOND + _GRACE
        return (
            f"SET LOCAL idle_in_transaction_session_timeout = {longest}; SET LOCAL lock_timeout = {longest}; "
            f"SET LOCAL statement_timeout = {min(longest, STATEMENT_TIMEOUT * 1_000)}; "
        )

    async def _end(self, verb: str) -> None:
        await (self._transaction.commit() if verb == "COMMIT" else self._transaction.rollback())

    def _was_closed(self, connection: PostgresConnection) -> bool:
        return isinstance(connection, LendableConnection) and connection.closed_by_hand

    async def _give_back(self, *, keep: bool) -> None:
        if self._handed_out is not None:
            self._handed_out._detach()  # noqa: SLF001 -- the pool of asyncpg has no public name for it
            self._handed_out = None
        await super()._give_back(keep=keep)

    async def _cleaned(self, connection: PostgresConnection) -> bool:
        if not isinstance(connection, LendableConnection):
            # The only one of a sibling, which would lose settings of its own.
            return True
        if connection.altered:
            return False
        try:
            await self._postgres.restore(connection)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return False
        return True
