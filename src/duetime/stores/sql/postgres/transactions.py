"""A handler's transaction on PostgreSQL, on a connection that is kept for lending."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from duetime.errors import StoreError
from duetime.failpoints import failpoint
from duetime.model.ids import new_token
from duetime.model.time import MILLISECOND, Clock, Micros
from duetime.stores.sql.driver import Script
from duetime.stores.sql.pool.connection_pool import ConnectionPool
from duetime.stores.sql.postgres.connection import (
    STATEMENT_TIMEOUT,
    PostgresConnection,
    PostgresConnector,
    play,
)
from duetime.stores.sql.postgres.errors import is_lost, was_never_sent

T = TypeVar("T")

if TYPE_CHECKING:
    _DriverConnection = asyncpg.Connection[asyncpg.Record]
else:
    _DriverConnection = asyncpg.Connection

_CONNECTION_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
_RESET_SESSION: Final = "RESET search_path; RESET ROLE"
"""So that the settlement finds our tables, and may write to them, whatever the handler has looked at."""
_GRACE: Final = 5_000
"""How much later than we the server ends a transaction, in milliseconds."""


class LendableConnection(_DriverConnection):
    """Remembers what its borrower has done to it that a look at it does not tell."""

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


class PostgresHandlerTransaction:
    """Begins as asyncpg does, so that a handler can nest transactions as usual."""

    blocking = False
    expired = False

    def __init__(
        self,
        pool: ConnectionPool[PostgresConnection],
        connector: PostgresConnector,
        *,
        clock: Clock | None,
        timeout: Micros,
    ) -> None:
        self._pool = pool
        self._connector = connector
        self._clock = clock
        self._timeout = timeout
        self._mark = f"duetime_{new_token()}"
        self._connection: PostgresConnection | None = None
        self._handed_out: Any = None
        self._transaction: Any = None

    async def begin(self) -> object:
        """Begin on a connection of the pool, on another one if that was found lost."""
        with self._connector.errors():
            try:
                return await self._begin()
            except Exception as error:
                silent = isinstance(error, TimeoutError)
                if not (silent or is_lost(error) or was_never_sent(error)):
                    raise
                self._connector.patience.heed(error)
                self._pool.clear()
                return await self._begin()

    async def is_whole(self) -> bool:
        """Let go of the savepoint that stands at the beginning: it is gone if the transaction has been ended."""
        connection = self._open()
        with self._connector.errors():
            try:
                async with self._connector.patience.one_try():
                    await connection.execute(f"RELEASE {self._mark}; {_RESET_SESSION}")
            except asyncpg.InFailedSQLTransactionError as error:
                if await self._rolled_back_to_mark():
                    text = "a statement failed in the transaction, so nothing of it can be committed"
                    raise StoreError(text) from error
                return False
            except _CONNECTION_ERRORS as error:
                if not self._was_ended(error):
                    raise
                return False
        return True

    async def run(self, script: Callable[[], Script[T]]) -> T:
        """Run a script inside the transaction."""
        with self._connector.errors():
            async with self._connector.patience.one_try():
                return await play(self._open(), script(), self._clock)

    async def commit(self) -> None:
        """Commit and take the connection back."""
        keep = False
        try:
            with self._connector.errors():
                failpoint("before:transaction")
                async with self._connector.patience.one_try():
                    await self._transaction.commit()
                failpoint("after:transaction")
            keep = True
        finally:
            await self._give_back(keep=keep)

    async def rollback(self, cause: BaseException | None = None) -> bool:
        """Undo everything and take the connection back."""
        del cause
        keep = whole = False
        try:
            whole = await self._rolled_back_to_mark()
            if whole:
                await self._transaction.rollback()
                keep = True
        except _CONNECTION_ERRORS:
            # The server rolls back what is left of a connection that is gone.
            whole = True
        finally:
            await self._give_back(keep=keep)
        return whole

    async def _begin(self) -> object:
        self._connection = connection = await self._pool.acquire()
        try:
            self._transaction = connection.transaction(isolation="read_committed")
            bounds = self._connector.local_bounds + self._bounds()
            async with self._connector.patience.one_try(repeatable=True):
                await self._transaction.start()
                await connection.execute(f"{bounds}SAVEPOINT {self._mark}")
        except BaseException:
            await self._give_back(keep=False)
            raise
        # As a pool of asyncpg's does: it works no more once it is given back, whoever has kept it.
        self._handed_out = PoolConnectionProxy(cast("Any", None), connection)
        return cast("object", self._handed_out)

    def _bounds(self) -> str:
        """Return what makes the server end the transaction when we cannot, and not before."""
        longest = self._timeout // MILLISECOND + _GRACE
        return (
            f"SET LOCAL idle_in_transaction_session_timeout = {longest}; SET LOCAL lock_timeout = {longest}; "
            f"SET LOCAL statement_timeout = {min(longest, STATEMENT_TIMEOUT * 1_000)}; "
        )

    async def _rolled_back_to_mark(self) -> bool:
        """Go back to the savepoint; False if it is not there any more."""
        try:
            async with self._connector.patience.one_try():
                await self._open().execute(f"ROLLBACK TO {self._mark}")
        except _CONNECTION_ERRORS as error:
            if not self._was_ended(error):
                raise
            return False
        return True

    def _was_ended(self, error: BaseException) -> bool:
        return isinstance(
            error, asyncpg.InvalidSavepointSpecificationError | asyncpg.NoActiveSQLTransactionError
        ) or bool(getattr(self._connection, "closed_by_hand", False))

    def _open(self) -> PostgresConnection:
        if self._connection is None:
            raise asyncpg.InterfaceError("the transaction has ended")
        return self._connection

    async def _give_back(self, *, keep: bool) -> None:
        connection, self._connection = self._connection, None
        if self._handed_out is not None:
            self._handed_out._detach()  # noqa: SLF001 -- the pool of asyncpg has no public name for it
            self._handed_out = None
        if connection is None:
            return
        clean = False
        try:
            clean = keep and await self._cleaned(connection)
        finally:
            self._pool.release(connection, keep=clean)

    async def _cleaned(self, connection: PostgresConnection) -> bool:
        """Undo what the handler has left in the session; False if that is better thrown away."""
        if not isinstance(connection, LendableConnection):
            # The only one of a sibling, which would lose settings of its own.
            return True
        if connection.altered:
            return False
        try:
            await self._connector.restore(connection)
        except _CONNECTION_ERRORS:
            return False
        return True
