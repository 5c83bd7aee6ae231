"""Runs scripts on MariaDB and MySQL; hints are carried by rows, or not at all on MySQL, so that workers poll."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from duetime.model.time import Clock, Micros
from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.sql.driver import DriverHandlerTransaction
from duetime.stores.sql.mariadb.checks import examine
from duetime.stores.sql.mariadb.connection import MariaDbConnection, MariaDbConnector
from duetime.stores.sql.mariadb.dialect import MARIADB
from duetime.stores.sql.mariadb.hints import HintRowSender, HintRowWatcher
from duetime.stores.sql.mariadb.transactions import MariaDbHandlerTransaction
from duetime.stores.sql.pool.connection_pool import ConnectionPool
from duetime.stores.sql.pool.driver import OpenConnections, PooledDriver, SharedHints
from duetime.stores.sql.statements.loader import load_hints


class MariaDbDriver(PooledDriver[MariaDbConnection]):
    """A driver for one database; a sibling has a single connection, which is made when it is needed."""

    def __init__(
        self,
        connector: MariaDbConnector,
        *,
        namespace: str,
        clock: Clock | None,
        pool: int,
        shared: SharedHints | None = None,
    ) -> None:
        super().__init__(connector, clock=clock, shared=shared)
        self._mariadb = connector
        self._namespace = namespace
        self._size = pool
        self._hints_sql = load_hints(MARIADB, namespace)

    def announcement(self, hint: Hint) -> None:
        """Return nothing: a row that a caller's transaction had written to would stay locked until its end."""
        del hint

    def lend(self, *, timeout: Micros) -> DriverHandlerTransaction:
        """Return a transaction on a connection that no verb of the store waits for."""
        pool = self._open_connections().handlers
        return MariaDbHandlerTransaction(pool, self._mariadb, clock=self._clock, timeout=timeout)

    def sibling(self) -> Self:
        """Return a driver for another event loop."""
        return type(self)(
            self._mariadb, namespace=self._namespace, clock=self._clock, pool=1, shared=self._shared
        )

    async def doctor(self) -> list[DoctorCheck]:
        """Look at the server's version and settings."""
        return [*await self.read(examine), await self.examine_tls()]

    def _make_listener(self, on_hint: Callable[[Hint], None]) -> HintRowWatcher:
        return HintRowWatcher(
            self._mariadb,
            self._hints_sql["watch"],
            sender=self._shared.sender,
            clock=self._clock,
            on_hint=on_hint,
        )

    def _make_connections(self) -> OpenConnections[MariaDbConnection]:
        verbs, handlers = (ConnectionPool(self._mariadb.connect, size=self._size) for _ in range(2))
        own = verbs if self._is_sibling else ConnectionPool(self._mariadb.connect, size=1)
        sender = HintRowSender(own, self._mariadb, self._hints_sql["tell"], sender=self._shared.sender)
        return OpenConnections(verbs, handlers, own, sender)
