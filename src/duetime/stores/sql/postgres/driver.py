"""Runs scripts on PostgreSQL, and hears and tells hints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Self

from duetime.model.time import Clock, Micros
from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.base.timeouts import DEFAULT_TIMEOUT
from duetime.stores.sql.driver import DriverHandlerTransaction, Query, Statement
from duetime.stores.sql.pool.connection_pool import ConnectionPool
from duetime.stores.sql.pool.driver import OpenConnections, PooledDriver, SharedHints
from duetime.stores.sql.pool.hints import encode_hints
from duetime.stores.sql.postgres.checks import examine
from duetime.stores.sql.postgres.connection import Pooler, PostgresConnection, PostgresConnector
from duetime.stores.sql.postgres.hints import NotificationListener, NotificationSender, channel_name
from duetime.stores.sql.postgres.transactions import LendableConnection, PostgresHandlerTransaction

_NOTIFY: Final = Statement("notify", "SELECT pg_notify($1, $2)", ("channel", "text"))


class PostgresDriver(PooledDriver[PostgresConnection]):
    """A driver for one database; a sibling has a single connection, which is made when it is needed."""

    def __init__(
        self,
        dsn: str,
        *,
        namespace: str = "duetime",
        clock: Clock | None = None,
        pool: int = 10,
        pooler: Pooler = "auto",
        timeout: float = DEFAULT_TIMEOUT,
        connector: PostgresConnector | None = None,
        shared: SharedHints | None = None,
    ) -> None:
        """A sibling gets what it has in common with its driver: `connector` and `shared`."""
        self._postgres = connector or PostgresConnector(dsn, pooler=pooler, timeout=timeout)
        super().__init__(self._postgres, clock=clock, shared=shared)
        self._dsn = dsn
        self._channel = channel_name(namespace)
        self._namespace = namespace
        self._size = pool

    def announcement(self, hint: Hint) -> Query:
        """Return a notification, which the server delivers when the transaction commits; to us as well."""
        return Query(_NOTIFY, {"channel": self._channel, "text": encode_hints("", [hint])})

    def lend(self, *, timeout: Micros) -> DriverHandlerTransaction:
        """Return a transaction on a connection that no verb of the store waits for."""
        pool = self._open_connections().handlers
        return PostgresHandlerTransaction(pool, self._postgres, clock=self._clock, timeout=timeout)

    def sibling(self) -> Self:
        """Return a driver for another event loop."""
        return type(self)(
            self._dsn,
            namespace=self._namespace,
            clock=self._clock,
            connector=self._postgres,
            shared=self._shared,
        )

    async def doctor(self) -> list[DoctorCheck]:
        """Look at the server's version and settings, and for a pooler."""
        found = await self.read(lambda: examine(pooled=self._postgres.pooled))
        return [*found, await self.examine_tls()]

    def _make_listener(self, on_hint: Callable[[Hint], None]) -> NotificationListener:
        return NotificationListener(
            self._postgres, channel=self._channel, sender=self._shared.sender, on_hint=on_hint
        )

    def _make_connections(self) -> OpenConnections[PostgresConnection]:
        connect = self._postgres.connect
        if self._is_sibling:
            # Heartbeats go over it: for one statement in ten seconds, to plan it takes longer than to run it.
            only = ConnectionPool(partial(connect, plan_cache_mode="force_generic_plan"), size=1)
            return OpenConnections(only, only, only, self._sender(only))
        verbs, own = ConnectionPool(connect, size=self._size), ConnectionPool(connect, size=1)
        handlers = ConnectionPool(partial(connect, LendableConnection), size=self._size)
        return OpenConnections(verbs, handlers, own, self._sender(own, verbs=verbs))

    def _sender(
        self,
        pool: ConnectionPool[PostgresConnection],
        *,
        verbs: ConnectionPool[PostgresConnection] | None = None,
    ) -> NotificationSender:
        return NotificationSender(
            pool,
            timeouts=self._postgres.timeouts,
            channel=self._channel,
            sender=self._shared.sender,
            verbs=verbs,
        )
