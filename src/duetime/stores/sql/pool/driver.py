"""Runs scripts on pooled connections: a single statement in one round trip, several in a transaction."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Any, Final, Generic, Protocol, TypeVar

from duetime.errors import NotOpen
from duetime.failpoints import failpoint
from duetime.model.time import Clock
from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.base.encryption import examine_tls
from duetime.stores.sql.driver import CallerTransaction, Script, script_name
from duetime.stores.sql.pool.connection import C, Connector
from duetime.stores.sql.pool.connection_pool import ConnectionPool
from duetime.stores.sql.pool.errors import StaleConnection
from duetime.stores.sql.pool.transactions import PooledCallerTransaction
from duetime.stores.sql.transactions.caller import not_accepted

T = TypeVar("T")
_ConnectionWork = Callable[[C, float | None], Awaitable[T]]

_SHORTEST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.2
_ROLLBACK_TIMEOUT: Final = 1.0
"""How long a transaction may take to be rolled back, in seconds, before its connection is closed instead."""


class OpenConnections(Protocol[C]):
    """What is there while a driver is open."""

    @property
    def pool(self) -> ConnectionPool[C]:
        """For verbs."""
        ...

    @property
    def lendable(self) -> ConnectionPool[C]:
        """For handlers, so that verbs do not wait for them and never meet what they have set."""
        ...

    @property
    def pools(self) -> tuple[ConnectionPool[C], ...]:
        """All there are."""
        ...

    @property
    def ends(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        """What closes it all, in order."""
        ...

    @property
    def pid(self) -> int:
        """The process whose connections these are; a forked child must not speak on them."""
        ...


L = TypeVar("L", bound=OpenConnections[Any])


class PooledDriver(Generic[C, L]):
    """The part of a driver that is the same for all databases on a network."""

    single_writer = False

    def __init__(self, connector: Connector[C], *, clock: Clock | None, lazy: bool) -> None:
        self._connector = connector
        self._clock = clock
        self._lazy = lazy
        """Whether it connects when it is first used."""
        self._links: L | None = None
        self._forget: Callable[[], None] = lambda: None

    async def open(self) -> None:
        """Connect once, to see that it works; a sibling does so when it is first used."""
        if self._links is not None:
            return
        self._links = self._link()
        self._forget = self._connector.patience.watch(self._give_up)
        if self._lazy:
            return
        try:
            await self._run(_nothing)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Send the last hints, let running verbs end, and disconnect."""
        links, self._links = self._links, None
        self._forget()
        if links is not None and links.pid == os.getpid():
            for end in links.ends:
                await end()

    async def write(
        self,
        script: Callable[[], Script[T]],
        *,
        atomic: bool = True,
        hint: Hint | None = None,
        rows: int | None = 1,
        again: Callable[[], Script[T]] | None = None,
    ) -> T:
        """Run a script in one transaction, or as a single statement that is its own; again after a conflict."""
        second = None if again is None else partial(self._do, again, atomic=atomic)
        answer = await self._run(partial(self._do, script, atomic=atomic), again=second, rows=rows)
        if hint is not None:
            self.hint(hint)
        return answer

    def write_blocking(self, script: Callable[[], Script[T]], *, hint: Hint | None = None) -> T | None:  # noqa: ARG002
        """Refuse: the connections belong to an event loop."""
        return None

    async def read(self, script: Callable[[], Script[T]], *, rows: int | None = 1) -> T:
        """Run a script that changes nothing; again if the connection was lost."""
        work = partial(self._do, script, atomic=False)
        return await self._run(work, again=work, rows=rows)

    async def examine_tls(self) -> DoctorCheck:
        """Say how connections to the server are encrypted."""
        here, option = self._connector, self._connector.place.authority

        async def look(connection: C, _within: float | None) -> DoctorCheck:
            return examine_tls(
                here.transport(connection),
                encrypt=f"set up TLS on the server, and add ?{option}=ca.pem to the URL",
                verify=f"add ?{option}=ca.pem to the URL, with the certificate of the authority that signed the server's",
            )

        return await self._run(look)

    def borrow(self, tx: object) -> CallerTransaction:
        """Take a caller's connection, which belongs to the event loop that asks."""
        connection = self._connector.taken(tx)
        if connection is not None:
            return PooledCallerTransaction(tx, connection, self._connector, clock=self._clock)
        # Here, because it knows the other databases as well, and most workers never need it.
        from duetime.stores.sql.transactions.sqlalchemy import is_sqlalchemy, sqlalchemy_transaction

        if is_sqlalchemy(tx):
            return sqlalchemy_transaction(tx, dialect=self._connector.alchemy, clock=self._clock)
        raise not_accepted(tx, self._connector.accepts)

    def hint(self, hint: Hint) -> None:
        """Tell this process at once and others soon."""
        raise NotImplementedError

    def _link(self) -> L:
        """Make the pools, and what else there is while the driver is open; connect to nothing."""
        raise NotImplementedError

    def _open_links(self) -> L:
        if self._links is None:
            raise NotOpen("the store is not open; use it inside `async with scheduler`")
        if self._links.pid != os.getpid():
            raise NotOpen(
                "this process was forked after the store was opened; a database connection does not survive "
                "that: open the scheduler in the child"
            )
        return self._links

    def _give_up(self) -> None:
        """Close the unused connections: where one does not answer, the others may be dead as well."""
        if self._links is not None and self._links.pid == os.getpid():
            for pool in self._links.pools:
                pool.clear()

    async def _run(
        self, work: _ConnectionWork[C, T], *, again: _ConnectionWork[C, T] | None = None, rows: int | None = 1
    ) -> T:
        """Do work on a connection of the pool, as often as conflicts and a lost connection make it necessary."""
        left, whole = self._connector.patience.deadline(rows, repeatable=again is not None)
        conflict: Exception | None = None
        lost = False
        with self._connector.errors():
            for tries in count(1):
                pool: ConnectionPool[C] = self._open_links().pool
                began = time.monotonic()
                if lost and pool.has_room:
                    async with asyncio.timeout(whole):
                        connection = await pool.acquire()
                    left = _time_left(whole, began)
                else:
                    # Not counted: to wait for others who are served is no sign of silence.
                    connection = await pool.acquire()
                    began = time.monotonic()
                try:
                    return await self._once(
                        work,
                        pool,
                        connection,
                        within=left,
                        repeatable=again is not None,
                        answers=conflict is not None,
                    )
                except StaleConnection as stale:
                    if lost:
                        raise stale.__cause__ or stale from None
                    lost = True
                    pool.clear()
                    work, again = again or work, None
                except TimeoutError:
                    if conflict is not None:
                        raise conflict from None
                    raise
                except Exception as error:
                    if not self._connector.judge.is_conflict(error) or tries >= self._connector.most_tries:
                        raise
                    conflict = error
                    await asyncio.sleep(random.uniform(0, min(_SHORTEST_PAUSE * 2**tries, _LONGEST_PAUSE)))
                left = whole = _time_left(whole, began)
        raise AssertionError  # pragma: no cover - the last try returns or raises

    async def _once(
        self,
        work: _ConnectionWork[C, T],
        pool: ConnectionPool[C],
        connection: C,
        *,
        within: float | None,
        repeatable: bool,
        answers: bool,
    ) -> T:
        """Do work on a connection; raise `Stale` if that was lost and it is safe to do it again.

        `answers`: the server has just answered, that others were in the way.
        """
        keep = False
        began = time.monotonic()
        try:
            answer = await work(connection, within)
            keep = True
        except BaseException as error:
            if not answers:
                # A caller may give up on what takes long without any silence.
                waited = 0 if within is None else time.monotonic() - began
                self._connector.patience.heed(error, waited=waited)
            if not isinstance(error, Exception):
                raise
            judge = self._connector.judge
            # A statement that may take long, and did, is not sent again; nor one that waits for others.
            silent = within is not None and not answers
            lost = silent if isinstance(error, TimeoutError) else judge.is_lost(error)
            if judge.was_never_sent(error) or (repeatable and lost):
                raise StaleConnection(str(error)) from error
            keep = judge.spares_connection(error) and await _rolled_back(connection)
            raise
        finally:
            pool.release(connection, keep=keep)
        return answer

    def _do(
        self, script: Callable[[], Script[T]], connection: C, within: float | None, *, atomic: bool
    ) -> Awaitable[T]:
        """Run a script on a connection within a time."""
        return self._play(script, connection, within, atomic=atomic)

    async def _play(
        self, script: Callable[[], Script[T]], connection: C, within: float | None, *, atomic: bool
    ) -> T:
        # Behind a pooler also a single statement needs a transaction: it takes two trips, to the same server.
        if atomic or self._connector.pooled:
            async with asyncio.timeout(within):
                return await self._transact(script, connection, long=within is None)
        if within is None:
            await self._reach(connection, self._connector.probe, long=True)
        steps = script()
        name = script_name(steps)
        try:
            failpoint(f"before:{name}")
            answer = await self._connector.play(connection, steps, self._clock, within)
        finally:
            steps.close()
        failpoint(f"after:{name}")
        return answer

    async def _transact(self, script: Callable[[], Script[T]], connection: C, *, long: bool) -> T:
        await self._reach(connection, self._connector.begin, long=long)
        steps = script()
        name = script_name(steps)
        try:
            answer = await self._connector.play(connection, steps, self._clock)
        finally:
            steps.close()
        failpoint(f"before:{name}")
        await connection.execute("COMMIT")
        failpoint(f"after:{name}")
        return answer

    async def _reach(self, connection: C, text: str, *, long: bool) -> None:
        """Send what has no effect yet; raise `Stale` if the connection is lost, before what may take long is waited for."""
        patience = self._connector.patience
        try:
            async with asyncio.timeout(patience.deadline(repeatable=True).first if long else None):
                await connection.execute(text)
        except Exception as error:
            patience.heed(error)
            if self._connector.judge.is_lost(error) or isinstance(error, TimeoutError):
                raise StaleConnection(str(error)) from error
            raise


def _time_left(whole: float | None, began: float) -> float | None:
    """Return what is left of a time."""
    return None if whole is None else max(0.0, whole - (time.monotonic() - began))


async def _nothing(_connection: object, _within: float | None) -> None:
    pass


async def _rolled_back(connection: Any) -> bool:
    """End the transaction, if one is open; False when that did not work."""
    if connection.is_in_transaction():
        try:
            async with asyncio.timeout(_ROLLBACK_TIMEOUT):
                await connection.execute("ROLLBACK")
        except Exception:  # noqa: BLE001 -- whatever it was, the connection is closed
            return False
    return True
