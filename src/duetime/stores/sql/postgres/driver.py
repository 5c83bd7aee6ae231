"""Runs scripts on PostgreSQL, and hears and tells hints."""

from __future__ import annotations

from typing import Final

from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.sql.checks import examine_postgres
from duetime.stores.sql.driver import Query, Script, Statement
from duetime.stores.sql.pool.driver import PooledDriver
from duetime.stores.sql.pool.hints import encode_hints
from duetime.stores.sql.postgres.connection import PostgresConnection
from duetime.stores.sql.postgres.hints import NotificationListener, NotificationSender, channel_name
from duetime.stores.sql.postgres.transactions import PostgresHandlerTransaction

_NOTIFY: Final = Statement("notify", "SELECT pg_notify($1, $2)", ("channel", "text"))


class PostgresDriver(PooledDriver[PostgresConnection]):
    """A driver for one database."""

    sender = NotificationSender
    listener = NotificationListener
    transaction = PostgresHandlerTransaction

    def announcement(self, hint: Hint) -> Query:
        """Return a notification, which the server delivers when the transaction commits; to us as well."""
        return Query(_NOTIFY, {"channel": channel_name(self._namespace), "text": encode_hints("", [hint])})

    def _examine(self) -> Script[list[DoctorCheck]]:
        return examine_postgres(pooled=self._connector.pooled)
