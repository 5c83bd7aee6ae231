"""Transactions on pooled connections: a caller's own, and those that handlers work in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Generic, NoReturn, TypeVar

from duetime.errors import InvalidTransaction, StoreError
from duetime.failpoints import failpoint
from duetime.model.ids import new_token
from duetime.model.time import Clock, Micros
from duetime.stores.sql.driver import ScriptMaker
from duetime.stores.sql.pool import errors
from duetime.stores.sql.pool.connections import C, ConnectionPool, Connector
from duetime.stores.sql.transactions import caller

T = TypeVar("T")


class PooledCallerTransaction(Generic[C]):
    """Runs scripts on the caller's connection."""

    def __init__(self, tx: object, connection: C, connector: Connector[C], *, clock: Clock | None) -> None:
        if connection.is_closed():
            raise InvalidTransaction(caller.CONNECTION_GONE)
        if not connection.is_in_transaction():
            raise caller.no_transaction(connector.how_to_begin)
        self._tx = tx
        self._connection = connection
        self._connector = connector
        self._clock = clock
        self.announces = connector.announces

    async def run(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction."""
        connection = self._connection
        with self._connector.errors:
            await connection.execute(f"SAVEPOINT {caller.SAVEPOINT}")
            try:
                answer = await self._connector.play(connection, script(), self._clock)
            except BaseException as error:
                await self._take_back(error)
                if self._connector.errors.meaning(error) is errors.NO_TABLE:
                    raise InvalidTransaction(caller.ANOTHER_DATABASE) from error
                raise
            await connection.execute(f"RELEASE SAVEPOINT {caller.SAVEPOINT}")
        return answer

    async def _take_back(self, cause: BaseException) -> None:
        """Undo what a script has done; raise `InvalidTransaction` where the server has undone more than that."""
        connection = self._connection
        try:
            await connection.execute(f"ROLLBACK TO SAVEPOINT {caller.SAVEPOINT}")
            await connection.execute(f"RELEASE SAVEPOINT {caller.SAVEPOINT}")
        except Exception as error:  # noqa: BLE001 -- what has failed before says more
            if self._connector.errors.meaning(error) is not errors.NO_SAVEPOINT:
                return
            with suppress(Exception):
                # Nothing is left to roll back, but only an answer tells the driver that no transaction is open.
                await connection.execute("ROLLBACK")
            raise caller.rolled_back_by_server(cause) from cause

    def run_blocking(self, script: ScriptMaker[T]) -> NoReturn:
        """Refuse: this connection lives in an event loop."""
        del script
        raise caller.needs_event_loop(self._tx)

    def lend(self, *, timeout: Micros) -> NoReturn:
        """Refuse: the store has connections of that kind."""
        del timeout
        raise caller.not_alchemy(self._tx)


class PooledHandlerTransaction(ABC, Generic[C]):
    """Tells by a savepoint at its beginning whether it is still the transaction that was begun."""

    blocking = False
    expired = False
    after_release = ""
    """What follows when the savepoint was released, in the same text."""

    def __init__(
        self, pool: ConnectionPool[C], connector: Connector[C], *, clock: Clock | None, timeout: Micros
    ) -> None:
        self._pool = pool
        self._connector = connector
        self._clock = clock
        self._timeout = timeout
        self._mark = f"duetime_{new_token()}"
        self._connection: C | None = None

    @abstractmethod
    async def _start(self, connection: C) -> object:
        """Begin, set the savepoint and return what the handler gets."""

    async def _end(self, verb: str) -> None:
        """Commit or roll back, as `verb` says."""
        await self._open().execute(verb)

    async def begin(self) -> object:
        """Begin on a connection of the pool, on another one if that was found lost."""
        with self._connector.errors:
            try:
                return await self._begin()
            except Exception as error:
                lost = self._connector.errors.is_lost(error) or self._connector.errors.was_never_sent(error)
                if not (lost or isinstance(error, TimeoutError)):
                    raise
                self._connector.timeouts.heed(error)
                self._pool.clear()
                return await self._begin()

    async def _begin(self) -> object:
        self._connection = connection = await self._pool.acquire()
        try:
            async with self._connector.timeouts.one_try(repeatable=True):
                return await self._start(connection)
        except BaseException:
            await self._give_back(keep=False)
            raise

    async def is_whole(self) -> bool:
        """Release the savepoint that stands at the beginning: it is gone if the transaction has been ended."""
        with self._connector.errors:
            try:
                return await self._at_mark("RELEASE SAVEPOINT", self.after_release)
            except Exception as error:
                if self._connector.errors.meaning(error) is not errors.ABORTED:
                    raise
                if not await self._at_mark("ROLLBACK TO SAVEPOINT"):
                    return False
                raise StoreError(
                    "a statement failed in the transaction, so it cannot be committed"
                ) from error

    async def run(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction."""
        with self._connector.errors:
            async with self._connector.timeouts.one_try():
                return await self._connector.play(self._open(), script(), self._clock)

    async def commit(self) -> None:
        """Commit and take the connection back."""
        try:
            with self._connector.errors:
                failpoint("before:transaction")
                async with self._connector.timeouts.one_try():
                    await self._end("COMMIT")
                failpoint("after:transaction")
        except BaseException:
            await self._give_back(keep=False)
            raise
        await self._give_back(keep=True)

    async def rollback(self, cause: BaseException | None = None) -> bool:
        """Undo everything and take the connection back."""
        del cause
        keep = whole = False
        try:
            with self._connector.errors:
                whole = await self._at_mark("ROLLBACK TO SAVEPOINT")
                if whole:
                    async with self._connector.timeouts.one_try():
                        await self._end("ROLLBACK")
                    keep = True
        except StoreError:
            # The server rolls back what is left of a connection that is gone.
            whole = True
        finally:
            await self._give_back(keep=keep)
        return whole

    async def _at_mark(self, verb: str, then: str = "") -> bool:
        """Do something with the savepoint; False if it is not there any more."""
        connection = self._open()
        try:
            async with self._connector.timeouts.one_try():
                await connection.execute(f"{verb} {self._mark}{then}")
        except Exception as error:
            # What the handler has closed looks like a lost connection otherwise.
            closed = getattr(connection, "closed_by_hand", False)
            if closed or self._connector.errors.meaning(error) is errors.NO_SAVEPOINT:
                return False
            raise
        return True

    def _open(self) -> C:
        if self._connection is None:
            raise StoreError("the transaction has ended")
        return self._connection

    async def _give_back(self, *, keep: bool) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            clean = False
            try:
                clean = keep and await self._connector.clean(connection)
            finally:
                self._pool.release(connection, keep=clean)
