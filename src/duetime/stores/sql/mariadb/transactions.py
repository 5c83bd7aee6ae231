"""A handler's transaction on MariaDB."""

from __future__ import annotations

from typing import Final

from duetime.model.time import SECOND
from duetime.stores.sql.mariadb.connection import MariaDbConnection
from duetime.stores.sql.pool.transactions import PooledHandlerTransaction

_GRACE: Final = 5
"""How much later than we the server ends a transaction, in seconds."""


class MariaDbHandlerTransaction(PooledHandlerTransaction[MariaDbConnection]):
    """The connection is closed at the end: nothing else undoes all that a handler can have set."""

    async def _start(self, connection: MariaDbConnection) -> object:
        # The server ends an idle transaction when we cannot, and not before.
        await connection.execute(connection.variant.bounds.format(self._timeout // SECOND + _GRACE))
        await connection.execute("BEGIN")
        await connection.execute(f"SAVEPOINT {self._mark}")
        return connection.watched()

    async def _end(self, verb: str) -> None:
        await self._open().execute(verb)

    def _was_closed(self, connection: MariaDbConnection) -> bool:
        return connection.closed_by_hand
