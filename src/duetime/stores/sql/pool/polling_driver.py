"""A driver for a database without notifications: hints are carried by rows, or not at all, so that workers poll."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, Self

from duetime.model.time import Clock, Micros
from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.base.hints import HintSubscribers
from duetime.stores.sql.driver import DriverHandlerTransaction, Script, Statement
from duetime.stores.sql.pool.connection import C, LendingConnector
from duetime.stores.sql.pool.connection_pool import ConnectionPool
from duetime.stores.sql.pool.driver import PooledDriver
from duetime.stores.sql.pool.hint_rows import HintRowWatcher, HintRowWriter
from duetime.stores.sql.pool.hints import HintConnections
from duetime.stores.sql.pool.transactions import PooledHandlerTransaction


class _PollingConnections(NamedTuple):
    """What is there while a driver is open."""

    pool: ConnectionPool[Any]
    lendable: ConnectionPool[Any]
    pools: tuple[ConnectionPool[Any], ...]
    writer: HintRowWriter[Any]
    ends: tuple[Callable[[], Awaitable[None]], ...]
    pid: int


class SharedDriverState(NamedTuple):
    """What a driver and its siblings have in common."""

    hints: Mapping[str, Statement]
    """What tells others something, and what waits for it."""
    subscribers: HintSubscribers
    sender: str
    """Names us in hints, so that we can tell our own."""
    sibling: bool = False

    @classmethod
    def of(cls, hints: Mapping[str, Statement]) -> Self:
        """Begin one."""
        return cls(hints, HintSubscribers(), secrets.token_hex(4))


class PollingDriver(PooledDriver[C, _PollingConnections], Generic[C]):
    """A driver for one database; a sibling has a single connection, which is made when it is needed."""

    def __init__(
        self,
        connector: LendingConnector[C],
        *,
        clock: Clock | None,
        pool: int,
        examine: Callable[[], Script[list[DoctorCheck]]],
        family: SharedDriverState,
    ) -> None:
        super().__init__(connector, clock=clock, lazy=family.sibling)
        self._lending = connector
        self._size = pool
        self._examine = examine
        self._family = family
        self._ears = HintConnections(family.subscribers, self._watcher)

    def announcement(self, hint: Hint) -> None:
        """Return nothing: a row that a caller's transaction had written to would stay locked until its end."""
        del hint

    def lend(self, *, timeout: Micros) -> DriverHandlerTransaction:
        """Return a transaction on a connection that no verb of the store waits for."""
        return PooledHandlerTransaction(
            self._open_links().lendable, self._lending, clock=self._clock, timeout=timeout
        )

    def sibling(self) -> Self:
        """Return a driver for another event loop, on one connection of its own."""
        family = self._family._replace(sibling=True)
        return type(self)(self._lending, clock=self._clock, pool=1, examine=self._examine, family=family)

    def hint(self, hint: Hint) -> None:
        """Tell this process at once, and others by a row that is written behind the caller's back."""
        self._family.subscribers.notify(hint)
        if self._links is not None and self._links.pid == os.getpid():
            self._links.writer.send(hint)

    def wakeups(self) -> AsyncGenerator[Hint]:
        """Yield our own hints and those of other processes."""
        return self._ears.wakeups()

    @property
    def hears_others(self) -> bool:
        """Whether there is a connection that listens."""
        return self._ears.up

    async def doctor(self) -> list[DoctorCheck]:
        """Look at the server's version and settings."""
        return [*await self.read(self._examine), await self.examine_tls()]

    def _watcher(self, on_hint: Callable[[Hint], None]) -> HintRowWatcher[C]:
        return HintRowWatcher(
            self._lending,
            self._family.hints["watch"],
            sender=self._family.sender,
            clock=self._clock,
            on_hint=on_hint,
        )

    def _link(self) -> _PollingConnections:
        pool, lendable = (ConnectionPool(self._lending.connect, size=self._size) for _ in range(2))
        own = pool if self._lazy else ConnectionPool(self._lending.connect, size=1)
        tell, sender = self._family.hints["tell"], self._family.sender
        writer = HintRowWriter(own, self._lending, tell, sender=sender)
        ends = (writer.close, own.close, lendable.close, pool.close)
        return _PollingConnections(pool, lendable, (pool, lendable, own), writer, ends, os.getpid())
