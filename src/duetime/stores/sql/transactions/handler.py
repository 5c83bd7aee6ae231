"""A handler's transaction, from its beginning to the settlement that is its last statement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from duetime.errors import ClaimLost, StoreUnavailable, TransactionMisused
from duetime.model.job import Token
from duetime.model.outcome import Settlement
from duetime.stores.sql.driver import Driver, DriverHandlerTransaction
from duetime.stores.sql.settling import fate, settle
from duetime.stores.sql.statements.loader import Statements

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0


class SqlHandlerTransaction:
    """A transaction of one driver, and what the store knows about ending it."""

    def __init__(
        self,
        driver: Driver,
        lent: DriverHandlerTransaction,
        sql: Statements,
        *,
        owner: object,
        on_settled: Callable[[Settlement], None],
    ) -> None:
        self._owner = owner
        self._driver = driver
        self._lent = lent
        self._sql = sql
        self._on_settled = on_settled

    @property
    def blocking(self) -> bool:
        """Whether the connection works without an event loop."""
        return self._lent.blocking

    @property
    def expired(self) -> bool:
        """Whether it took too long and was rolled back."""
        return self._lent.expired

    def keeps_out(self, store: object) -> bool:
        """Whether a store cannot write while this is open; one on the same file may not be known to be that."""
        return self._driver.single_writer and store is self._owner

    async def begin(self) -> object:
        """Begin and return the connection."""
        return await self._lent.begin()

    async def complete(self, settlement: Settlement) -> None:
        """Write the settlement as the last statement and commit."""
        try:
            await self._settle(settlement)
        except BaseException:
            await self._lent.rollback()
            raise
        try:
            await self._lent.commit()
        except StoreUnavailable:
            if not await self._was_settled(settlement.token):
                raise
        self._on_settled(settlement)

    async def abandon(self, error: BaseException) -> None:
        """Roll back; the handler's own error is not masked by trouble with that."""
        if not await self._lent.rollback(error):
            raise _misused()

    async def _settle(self, settlement: Settlement) -> None:
        if not await self._lent.is_whole():
            raise _misused()
        if self._lent.expired:
            raise TimeoutError
        if not await self._lent.run(lambda: settle(self._sql, [settlement])):
            raise ClaimLost(
                f"job {settlement.token.job_id} was given to another worker or is gone; "
                "what this run has written is rolled back"
            )

    async def _was_settled(self, token: Token) -> bool:
        """Look up what came of a commit, as soon as the database can be asked."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._driver.write(lambda: fate(self._sql, token))
            except StoreUnavailable:
                await asyncio.sleep(pause)
                pause = min(_LONGEST_PAUSE, pause * 2)


def _misused() -> TransactionMisused:
    return TransactionMisused(
        "the handler has committed, rolled back or closed the transaction that it was lent, so its writes may "
        "have been committed without the job; leave the end of the transaction to the block"
    )
