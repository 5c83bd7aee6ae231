"""Runs scripts on PostgreSQL, and hears and tells hints."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple, Self, TypeVar

from duetime.model.time import Clock, Micros
from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.base.hints import HintSubscribers
from duetime.stores.base.timeouts import DEFAULT_TIMEOUT
from duetime.stores.sql.driver import DriverHandlerTransaction, Query, Script, SingleQueryScript, Statement
from duetime.stores.sql.pool.connection_pool import ConnectionPool
from duetime.stores.sql.pool.driver import PooledDriver
from duetime.stores.sql.pool.hints import HintConnections, encode_hints
from duetime.stores.sql.postgres.checks import examine
from duetime.stores.sql.postgres.connection import Pooler, PostgresConnection, PostgresConnector, play_single
from duetime.stores.sql.postgres.hints import NotificationListener, NotificationSender, channel_name
from duetime.stores.sql.postgres.transactions import LendableConnection, PostgresHandlerTransaction

T = TypeVar("T")

_NOTIFY: Final = Statement("notify", "SELECT pg_notify($1, $2)", ("channel", "text"))


class _PostgresConnections(NamedTuple):
    """What is there while a driver is open."""

    pool: ConnectionPool[PostgresConnection]
    notifier: NotificationSender
    ends: tuple[Callable[[], Awaitable[None]], ...]
    lendable: ConnectionPool[PostgresConnection]
    pools: tuple[ConnectionPool[PostgresConnection], ...]
    pid: int


class _SharedPostgresState(NamedTuple):
    """What a driver and its siblings have in common."""

    connector: PostgresConnector
    subscribers: HintSubscribers
    sender: str
    """Names us in notifications, so that we can tell our own."""


class PostgresDriver(PooledDriver[PostgresConnection, _PostgresConnections]):
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
        family: _SharedPostgresState | None = None,
    ) -> None:
        self._dsn = dsn
        self._namespace = namespace
        self._size = pool
        connector = PostgresConnector(dsn, pooler=pooler, timeout=timeout)
        self._family = family or _SharedPostgresState(connector, HintSubscribers(), secrets.token_hex(4))
        super().__init__(self._family.connector, clock=clock, lazy=family is not None)
        self._ears = HintConnections(self._family.subscribers, self._listener)

    def announcement(self, hint: Hint) -> Query:
        """Return a notification, which the server delivers when the transaction commits; to us as well."""
        text = encode_hints("", [hint])
        return Query(_NOTIFY, {"channel": channel_name(self._namespace), "text": text})

    def lend(self, *, timeout: Micros) -> DriverHandlerTransaction:
        """Return a transaction on a connection that no verb of the store waits for."""
        return PostgresHandlerTransaction(
            self._open_links().lendable, self._family.connector, clock=self._clock, timeout=timeout
        )

    def sibling(self) -> Self:
        """Return a driver for another event loop, on one connection of its own."""
        return type(self)(
            self._dsn, namespace=self._namespace, clock=self._clock, pool=1, family=self._family
        )

    def hint(self, hint: Hint) -> None:
        """Tell this process at once, and others by a notification that is sent behind the caller's back."""
        self._family.subscribers.notify(hint)
        if self._links is not None and self._links.pid == os.getpid():
            self._links.notifier.send(hint)

    def wakeups(self) -> AsyncGenerator[Hint]:
        """Yield our own hints and those of other processes."""
        return self._ears.wakeups()

    @property
    def hears_others(self) -> bool:
        """Whether there is a connection that listens."""
        return self._ears.up

    async def doctor(self) -> list[DoctorCheck]:
        """Look at the server's version and settings, and for a pooler."""
        found = await self.read(lambda: examine(pooled=self._family.connector.pooled))
        return [*found, await self.examine_tls()]

    def _do(
        self,
        script: Callable[[], Script[T]],
        connection: PostgresConnection,
        within: float | None,
        *,
        atomic: bool,
    ) -> Awaitable[T]:
        # Here, because only a connection tells whether there is a pooler.
        if isinstance(script, SingleQueryScript) and not self._family.connector.pooled:
            lone: SingleQueryScript[T] = script  # pyright: ignore[reportUnknownVariableType] -- of what the script returns
            return play_single(connection, lone, self._clock, within)
        return self._play(script, connection, within, atomic=atomic)  # pyright: ignore[reportUnknownArgumentType] -- the same

    def _listener(self, on_hint: Callable[[Hint], None]) -> NotificationListener:
        return NotificationListener(
            self._family.connector,
            channel=channel_name(self._namespace),
            sender=self._family.sender,
            on_hint=on_hint,
        )

    def _link(self) -> _PostgresConnections:
        connect = self._family.connector.connect
        notify = partial(
            NotificationSender,
            patience=self._family.connector.patience,
            channel=channel_name(self._namespace),
            sender=self._family.sender,
        )
        if self._lazy:
            # Heartbeats go over it: for one statement in ten seconds, to plan it takes longer than to run it.
            only = ConnectionPool(partial(connect, plan_cache_mode="force_generic_plan"), size=1)
            notifier = notify(only)
            return _PostgresConnections(
                only, notifier, (notifier.close, only.close), only, (only,), os.getpid()
            )
        pool, own = ConnectionPool(connect, size=self._size), ConnectionPool(connect, size=1)
        lendable = ConnectionPool(partial(connect, LendableConnection), size=self._size)
        notifier = notify(own, verbs=pool)
        ends = (notifier.close, own.close, lendable.close, pool.close)
        return _PostgresConnections(pool, notifier, ends, lendable, (pool, lendable, own), os.getpid())
