"""Runs scripts on PostgreSQL, and hears and tells hints."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple, Self, TypeVar

from duetime.model.clock import Clock
from duetime.model.instants import Micros
from duetime.stores.base import Check, Hint
from duetime.stores.base.silence import ANSWER
from duetime.stores.base.subscribers import Subscribers
from duetime.stores.sql.driver import Lent, Lone, Query, Script, Statement
from duetime.stores.sql.pooled.driver import PooledDriver
from duetime.stores.sql.pooled.ears import Ears
from duetime.stores.sql.pooled.hints import encode
from duetime.stores.sql.pooled.pool import Pool
from duetime.stores.sql.postgres import checks
from duetime.stores.sql.postgres.connect import Connection, Connector, Pooler
from duetime.stores.sql.postgres.lent import LendableConnection, LentPostgres
from duetime.stores.sql.postgres.listen import Listener
from duetime.stores.sql.postgres.notify import Notifier, channel
from duetime.stores.sql.postgres.play import play_alone

T = TypeVar("T")

_NOTIFY: Final = Statement("notify", "SELECT pg_notify($1, $2)", ("channel", "text"))


class _Links(NamedTuple):
    """What is there while a driver is open."""

    pool: Pool[Connection]
    notifier: Notifier
    ends: tuple[Callable[[], Awaitable[None]], ...]
    lendable: Pool[Connection]
    pools: tuple[Pool[Connection], ...]
    pid: int


class _Family(NamedTuple):
    """What a driver and its siblings have in common."""

    connector: Connector
    subscribers: Subscribers
    sender: str
    """Names us in notifications, so that we can tell our own."""


class PostgresDriver(PooledDriver[Connection, _Links]):
    """A driver for one database; a sibling has a single connection, which is made when it is needed."""

    def __init__(
        self,
        dsn: str,
        *,
        namespace: str = "duetime",
        clock: Clock | None = None,
        pool: int = 10,
        pooler: Pooler = "auto",
        timeout: float = ANSWER,
        family: _Family | None = None,
    ) -> None:
        self._dsn = dsn
        self._namespace = namespace
        self._size = pool
        connector = Connector(dsn, pooler=pooler, timeout=timeout)
        self._family = family or _Family(connector, Subscribers(), secrets.token_hex(4))
        super().__init__(self._family.connector, clock=clock, lazy=family is not None)
        self._ears = Ears(self._family.subscribers, self._listener)

    def announcement(self, hint: Hint) -> Query:
        """Return a notification, which the server delivers when the transaction commits; to us as well."""
        text = encode("", [hint])
        return Query(_NOTIFY, {"channel": channel(self._namespace), "text": text})

    def lend(self, *, timeout: Micros) -> Lent:
        """Return a transaction on a connection that no verb of the store waits for."""
        return LentPostgres(
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

    async def doctor(self) -> list[Check]:
        """Look at the server's version and settings, and for a pooler."""
        found = await self.read(lambda: checks.examine(pooled=self._family.connector.pooled))
        return [*found, await self.examine_tls()]

    def _do(
        self, script: Callable[[], Script[T]], connection: Connection, within: float | None, *, atomic: bool
    ) -> Awaitable[T]:
        # Here, because only a connection tells whether there is a pooler.
        if isinstance(script, Lone) and not self._family.connector.pooled:
            lone: Lone[T] = script  # pyright: ignore[reportUnknownVariableType] -- of what the script returns
            return play_alone(connection, lone, self._clock, within)
        return self._play(script, connection, within, atomic=atomic)  # pyright: ignore[reportUnknownArgumentType] -- the same

    def _listener(self, on_hint: Callable[[Hint], None]) -> Listener:
        return Listener(
            self._family.connector,
            channel=channel(self._namespace),
            sender=self._family.sender,
            on_hint=on_hint,
        )

    def _link(self) -> _Links:
        connect = self._family.connector.connect
        notify = partial(
            Notifier,
            patience=self._family.connector.patience,
            channel=channel(self._namespace),
            sender=self._family.sender,
        )
        if self._lazy:
            # Heartbeats go over it: for one statement in ten seconds, to plan it takes longer than to run it.
            only = Pool(partial(connect, plan_cache_mode="force_generic_plan"), size=1)
            notifier = notify(only)
            return _Links(only, notifier, (notifier.close, only.close), only, (only,), os.getpid())
        pool, own = Pool(connect, size=self._size), Pool(connect, size=1)
        lendable = Pool(partial(connect, LendableConnection), size=self._size)
        notifier = notify(own, verbs=pool)
        ends = (notifier.close, own.close, lendable.close, pool.close)
        return _Links(pool, notifier, ends, lendable, (pool, lendable, own), os.getpid())
