"""Runs scripts on MariaDB and MySQL; hints are carried by rows, or not at all on MySQL, so that workers poll."""

from __future__ import annotations

from typing import Final

from duetime.model.time import SECOND
from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.sql.driver import Script
from duetime.stores.sql.mariadb.checks import examine
from duetime.stores.sql.mariadb.connection import MariaDbConnection
from duetime.stores.sql.mariadb.hints import HintRowSender, HintRowWatcher
from duetime.stores.sql.pool.driver import PooledDriver
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


class MariaDbDriver(PooledDriver[MariaDbConnection]):
    """A driver for one database."""

    sender = HintRowSender
    listener = HintRowWatcher
    transaction = MariaDbHandlerTransaction

    def announcement(self, hint: Hint) -> None:
        """Return nothing: a row that a caller's transaction had written to would stay locked until its end."""
        del hint

    def _examine(self) -> Script[list[DoctorCheck]]:
        return examine()
