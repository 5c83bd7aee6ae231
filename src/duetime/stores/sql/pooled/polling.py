"""A driver for a database that carries no hints from one process to another, so that workers poll."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Generic, NamedTuple, Self

from duetime.model.clock import Clock
from duetime.model.instants import Micros
from duetime.stores.base import Check, Hint
from duetime.stores.base.subscribers import Subscribers
from duetime.stores.sql.driver import Lent, Script
from duetime.stores.sql.pooled.connection import C, LendingConnector
from duetime.stores.sql.pooled.driver import PooledDriver
from duetime.stores.sql.pooled.lent import PooledLent
from duetime.stores.sql.pooled.pool import Pool


class _Links(NamedTuple):
    """What is there while a driver is open."""

    pool: Pool[Any]
    lendable: Pool[Any]
    ends: tuple[Callable[[], Awaitable[None]], ...]
    pid: int


class PollingDriver(PooledDriver[C, _Links], Generic[C]):
    """Tells hints to this process alone; a sibling has a single connection, which is made when it is needed."""

    hears_others = False

    def __init__(
        self,
        connector: LendingConnector[C],
        *,
        clock: Clock | None,
        pool: int,
        examine: Callable[[], Script[list[Check]]],
        subscribers: Subscribers | None = None,
    ) -> None:
        super().__init__(connector, clock=clock, lazy=subscribers is not None)
        self._lending = connector
        self._size = pool
        self._examine = examine
        self._subscribers = subscribers or Subscribers()

    def announcement(self, hint: Hint) -> None:
        """Return nothing: no commit can carry a hint."""
        del hint

    def lend(self, *, timeout: Micros) -> Lent:
        """Return a transaction on a connection that no verb of the store waits for."""
        return PooledLent(self._open_links().lendable, self._lending, clock=self._clock, timeout=timeout)

    async def hold(self, worker: str) -> bool:
        """Refuse: no session tells others that it lives."""
        del worker
        return False

    def sibling(self) -> Self:
        """Return a driver for another event loop, on one connection of its own."""
        return type(self)(
            self._lending, clock=self._clock, pool=1, examine=self._examine, subscribers=self._subscribers
        )

    def hint(self, hint: Hint) -> None:
        """Tell this process at once."""
        self._subscribers.notify(hint)

    async def wakeups(self) -> AsyncGenerator[Hint]:
        """Yield our own hints."""
        with self._subscribers.listening() as subscriber:
            async for hint in subscriber.hints():
                yield hint

    async def doctor(self) -> list[Check]:
        """Look at the server's version and settings."""
        return await self.read(self._examine)

    def _link(self) -> _Links:
        pool, lendable = (Pool(self._lending.connect, size=self._size) for _ in range(2))
        return _Links(pool, lendable, (lendable.close, pool.close), os.getpid())
