"""Runs scripts on PostgreSQL: a single statement in one round trip, several in a transaction."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeVar

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from duetime.errors import NotOpen
from duetime.failpoints import failpoint
from duetime.model.clock import Clock
from duetime.model.instants import Micros
from duetime.stores.base import Check, Hint
from duetime.stores.base.subscribers import Subscribers
from duetime.stores.sql.borrowing import not_accepted
from duetime.stores.sql.driver import Borrowed, Lent, Query, Script, Statement, script_name
from duetime.stores.sql.postgres import checks
from duetime.stores.sql.postgres.borrowed import BorrowedPostgres
from duetime.stores.sql.postgres.connect import Connection, Connector, Pooler
from duetime.stores.sql.postgres.errors import Stale, is_conflict, is_lost, spares_connection, was_never_sent
from duetime.stores.sql.postgres.lent import LendableConnection, LentPostgres
from duetime.stores.sql.postgres.listen import Listener
from duetime.stores.sql.postgres.marks import Marks
from duetime.stores.sql.postgres.notify import Notifier, channel, encode
from duetime.stores.sql.postgres.play import play
from duetime.stores.sql.postgres.pool import Pool

T = TypeVar("T")
_Work = Callable[[Connection], Awaitable[T]]

_MOST_TRIES: Final = 5
"""How often a script is run that collides with others."""
_SHORTEST_PAUSE: Final = 0.005
_NOTIFY: Final = Statement("notify", "SELECT pg_notify($1, $2)", ("channel", "text"))


class _Links(NamedTuple):
    """What is there while a driver is open."""

    pool: Pool
    notifier: Notifier
    ends: tuple[Callable[[], Awaitable[None]], ...]
    """What closes it all, in order."""
    marks: Marks | None
    lendable: Pool
    """For handlers, so that verbs do not wait for them and never meet what they have set."""
    pid: int
    """The process whose connections these are; a forked child must not speak on them."""


class _Family(NamedTuple):
    """What a driver and its siblings have in common."""

    connector: Connector
    subscribers: Subscribers
    sender: str
    """Names us in notifications, so that we can tell our own."""


class PostgresDriver:
    """A driver for one database; a sibling has a single connection, which is made when it is needed."""

    single_writer = False

    def __init__(
        self,
        dsn: str,
        *,
        namespace: str = "duetime",
        clock: Clock | None = None,
        pool: int = 10,
        pooler: Pooler = "auto",
        family: _Family | None = None,
    ) -> None:
        self._dsn = dsn
        self._namespace = namespace
        self._clock = clock
        self._size = pool
        self._sibling = family is not None
        self._family = family or _Family(Connector(dsn, pooler=pooler), Subscribers(), secrets.token_hex(4))
        self._connector = self._family.connector
        self._listeners: list[Listener] = []
        self._links: _Links | None = None

    async def open(self) -> None:
        """Connect once, to see that it works; a sibling does so when it is first used."""
        if self._links is not None:
            return
        self._links = self._link()
        if self._sibling:
            return
        try:
            await self._once(_nothing, repeatable=True)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Send the last hints, let running verbs end, and disconnect."""
        links, self._links = self._links, None
        if links is not None and links.pid == os.getpid():
            for end in links.ends:
                await end()

    async def write(
        self,
        script: Callable[[], Script[T]],
        *,
        atomic: bool = True,
        hint: Hint | None = None,
    ) -> T:
        """Run a script in one transaction, or as a single statement that is its own; again after a conflict."""
        answer = await self._run(partial(self._do, script, atomic=atomic), repeatable=False)
        if hint is not None:
            self.hint(hint)
        return answer

    def write_blocking(self, script: Callable[[], Script[T]], *, hint: Hint | None = None) -> T | None:  # noqa: ARG002
        """Refuse: the connections belong to an event loop."""
        return None

    async def read(self, script: Callable[[], Script[T]]) -> T:
        """Run a script that changes nothing; again if the connection was lost."""
        return await self._run(partial(self._do, script, atomic=False), repeatable=True)

    def borrow(self, tx: object) -> Borrowed:
        """Take a caller's connection, which belongs to the event loop that asks."""
        if isinstance(tx, asyncpg.Connection | PoolConnectionProxy):
            own: Any = tx  # pyright: ignore[reportUnknownVariableType] -- with records of any kind
            return BorrowedPostgres(own, connector=self._connector, clock=self._clock)
        # Here, because it knows the other databases as well, and most workers never need it.
        from duetime.stores.sql.alchemy import borrow_alchemy, is_alchemy

        if is_alchemy(tx):
            return borrow_alchemy(tx, dialect="postgresql", clock=self._clock)
        raise not_accepted(tx, "an asyncpg connection")

    def announcement(self, hint: Hint) -> Query:
        """Return a notification, which the server delivers when the transaction commits; to us as well."""
        text = encode("", [hint])
        return Query(_NOTIFY, {"channel": channel(self._namespace), "text": text})

    def lend(self, *, timeout: Micros) -> Lent:
        """Return a transaction on a connection that no verb of the store waits for."""
        return LentPostgres(self._open_links().lendable, self._connector, clock=self._clock, timeout=timeout)

    async def hold(self, worker: str) -> bool:
        """Mark the worker as living for as long as our connection does.

        Only a sibling can, and none can behind a pooler: elsewhere, connections come and go.
        """
        marks = self._open_links().marks
        return marks is not None and await self._run(
            lambda connection: marks.take(connection, worker), repeatable=True
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

    async def wakeups(self) -> AsyncGenerator[Hint]:
        """Yield our own hints and those of other processes."""
        with self._family.subscribers.listening() as subscriber:
            listener = Listener(
                self._connector,
                channel=channel(self._namespace),
                sender=self._family.sender,
                on_hint=subscriber.put,
            )
            self._listeners.append(listener)
            listening = asyncio.create_task(listener.run(), name="duetime-listen")
            try:
                async for hint in subscriber.hints():
                    yield hint
            finally:
                self._listeners.remove(listener)
                listening.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await listening

    @property
    def hears_others(self) -> bool:
        """Whether there is a connection that listens."""
        return any(listener.up for listener in self._listeners)

    async def doctor(self) -> list[Check]:
        """Look at the server's version and settings, and for a pooler."""
        return await self.read(lambda: checks.examine(pooled=self._connector.pooled))

    def _link(self) -> _Links:
        notify = partial(Notifier, channel=channel(self._namespace), sender=self._family.sender)
        if self._sibling:
            marks = Marks(self._connector)
            notifier = notify(marks.pool)
            return _Links(marks.pool, notifier, (notifier.close, marks.close), marks, marks.pool, os.getpid())
        pool, own = Pool(self._connector.connect, size=self._size), Pool(self._connector.connect, size=1)
        lendable = Pool(partial(self._connector.connect, LendableConnection), size=self._size)
        notifier = notify(own, verbs=pool)
        ends = (notifier.close, own.close, lendable.close, pool.close)
        return _Links(pool, notifier, ends, None, lendable, os.getpid())

    def _open_links(self) -> _Links:
        if self._links is None:
            raise NotOpen("the store is not open; use it inside `async with scheduler`")
        if self._links.pid != os.getpid():
            raise NotOpen(
                "this process was forked after the store was opened; a database connection does not survive "
                "that: open the scheduler in the child"
            )
        return self._links

    async def _run(self, work: _Work[T], *, repeatable: bool) -> T:
        """Do work on a connection of the pool, as often as conflicts and a lost connection make it necessary."""
        stale = False
        with self._connector.errors():
            for tries in range(1, _MOST_TRIES):
                try:
                    return await self._once(work, repeatable=repeatable)
                except Stale:
                    if stale:
                        raise
                    stale = True
                    self._open_links().pool.clear()
                except Exception as error:
                    if not is_conflict(error):
                        raise
                    await asyncio.sleep(random.uniform(0, _SHORTEST_PAUSE * 2**tries))
            return await self._once(work, repeatable=repeatable)

    async def _once(self, work: _Work[T], *, repeatable: bool) -> T:
        """Do work on a connection of the pool; raise `Stale` if that was lost and it is safe to do it again."""
        pool = self._open_links().pool
        connection = await pool.acquire()
        keep = False
        try:
            answer = await work(connection)
            keep = True
        except Exception as error:
            if was_never_sent(error) or (repeatable and is_lost(error)):
                raise Stale(str(error)) from error
            keep = spares_connection(error) and await _rolled_back(connection)
            raise
        finally:
            pool.release(connection, keep=keep)
        return answer

    async def _do(self, script: Callable[[], Script[T]], connection: Connection, *, atomic: bool) -> T:
        # Behind a pooler also a single statement needs a transaction: it takes two trips, to the same server.
        transaction = atomic or self._connector.pooled
        if transaction:
            await self._begin(connection)
        steps = script()
        name = script_name(steps)
        try:
            if not transaction:
                failpoint(f"before:{name}")
            answer = await play(connection, steps, self._clock)
        finally:
            steps.close()
        if transaction:
            failpoint(f"before:{name}")
            await connection.execute("COMMIT")
        failpoint(f"after:{name}")
        return answer

    async def _begin(self, connection: Connection) -> None:
        try:
            await connection.execute(self._connector.begin)
        except Exception as error:
            if is_lost(error):
                raise Stale(str(error)) from error
            raise


async def _nothing(_connection: Connection) -> None:
    pass


async def _rolled_back(connection: Connection) -> bool:
    """End the transaction, if one is open; False when that did not work."""
    if connection.is_in_transaction():
        try:
            await connection.execute("ROLLBACK")
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return False
    return True
