"""Runs scripts on PostgreSQL, and hears and tells hints."""

from __future__ import annotations

from typing import Any, Final, cast

from asyncpg.pool import PoolConnectionProxy

from duetime.model.time import MILLISECOND
from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.sql.driver import Query, Script, Statement
from duetime.stores.sql.pool.driver import PooledDriver
from duetime.stores.sql.pool.hints import encode_hints
from duetime.stores.sql.pool.transactions import PooledHandlerTransaction
from duetime.stores.sql.postgres.checks import examine
from duetime.stores.sql.postgres.connection import STATEMENT_TIMEOUT, PostgresConnection
from duetime.stores.sql.postgres.hints import NotificationListener, NotificationSender, channel_name

_NOTIFY: Final = Statement("notify", "SELECT pg_notify($1, $2)", ("channel", "text"))
_GRACE: Final = 5_000
"""How much later than we the server ends a transaction, in milliseconds."""


class PostgresHandlerTransaction(PooledHandlerTransaction[PostgresConnection]):
    """Begins as asyncpg does, so that a handler can nest transactions as usual."""

    # So that the settlement finds our tables, and may write to them, whatever the handler has set.
    after_release = "; RESET search_path; RESET ROLE"
    _handed_out: Any = None
    _transaction: Any = None

    async def _start(self, connection: PostgresConnection) -> object:
        self._transaction = connection.transaction(isolation="read_committed")
        await self._transaction.start()
        # The server ends the transaction when we cannot, and not before.
        longest = self._timeout // MILLISECOND + _GRACE
        await connection.execute(
            f"{self._connector.local_bounds}SET LOCAL idle_in_transaction_session_timeout = {longest}; "
            f"SET LOCAL lock_timeout = {longest}; "
            f"SET LOCAL statement_timeout = {min(longest, STATEMENT_TIMEOUT * 1_000)}; SAVEPOINT {self._mark}"
        )
        # As with a pool of asyncpg, what the handler has cannot be used any more once it is given back.
        self._handed_out = PoolConnectionProxy(cast("Any", None), connection)
        return cast("object", self._handed_out)

    async def _end(self, verb: str) -> None:
        await (self._transaction.commit() if verb == "COMMIT" else self._transaction.rollback())

    async def _give_back(self, *, keep: bool) -> None:
        if self._handed_out is not None:
            self._handed_out._detach()  # noqa: SLF001 -- the pool of asyncpg has no public name for it
            self._handed_out = None
        await super()._give_back(keep=keep)


class PostgresDriver(PooledDriver[PostgresConnection]):
    """A driver for one database."""

    sender = NotificationSender
    listener = NotificationListener
    transaction = PostgresHandlerTransaction

    def announcement(self, hint: Hint) -> Query:
        """Return a notification, which the server delivers when the transaction commits; to us as well."""
        return Query(_NOTIFY, {"channel": channel_name(self._namespace), "text": encode_hints("", [hint])})

    def _examine(self) -> Script[list[DoctorCheck]]:
        return examine(pooled=self._connector.pooled)
