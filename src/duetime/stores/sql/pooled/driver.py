"""Runs scripts on pooled connections: a single statement in one round trip, several in a transaction."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from duetime.errors import NotOpen
from duetime.failpoints import failpoint
from duetime.model.clock import Clock
from duetime.stores.base import Hint
from duetime.stores.sql.borrowing import not_accepted
from duetime.stores.sql.driver import Borrowed, Script, script_name
from duetime.stores.sql.pooled.borrowed import PooledBorrowed
from duetime.stores.sql.pooled.connection import C, Connector
from duetime.stores.sql.pooled.errors import Stale
from duetime.stores.sql.pooled.pool import Pool

T = TypeVar("T")
_Work = Callable[[C], Awaitable[T]]

_SHORTEST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.2


class Links(Protocol[C]):
    """What is there while a driver is open."""

    @property
    def pool(self) -> Pool[C]:
        """For verbs."""
        ...

    @property
    def lendable(self) -> Pool[C]:
        """For handlers, so that verbs do not wait for them and never meet what they have set."""
        ...

    @property
    def ends(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        """What closes it all, in order."""
        ...

    @property
    def pid(self) -> int:
        """The process whose connections these are; a forked child must not speak on them."""
        ...


L = TypeVar("L", bound=Links[Any])


class PooledDriver(Generic[C, L]):
    """The part of a driver that is the same for all databases on a network."""

    single_writer = False

    def __init__(self, connector: Connector[C], *, clock: Clock | None, lazy: bool) -> None:
        self._connector = connector
        self._clock = clock
        self._lazy = lazy
        """Whether it connects when it is first used."""
        self._links: L | None = None

    async def open(self) -> None:
        """Connect once, to see that it works; a sibling does so when it is first used."""
        if self._links is not None:
            return
        self._links = self._link()
        if self._lazy:
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
        connection = self._connector.taken(tx)
        if connection is not None:
            return PooledBorrowed(tx, connection, self._connector, clock=self._clock)
        # Here, because it knows the other databases as well, and most workers never need it.
        from duetime.stores.sql.alchemy import borrow_alchemy, is_alchemy

        if is_alchemy(tx):
            return borrow_alchemy(tx, dialect=self._connector.alchemy, clock=self._clock)
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

    async def _run(self, work: _Work[C, T], *, repeatable: bool) -> T:
        """Do work on a connection of the pool, as often as conflicts and a lost connection make it necessary."""
        stale = False
        with self._connector.errors():
            for tries in range(1, self._connector.most_tries):
                try:
                    return await self._once(work, repeatable=repeatable)
                except Stale:
                    if stale:
                        raise
                    stale = True
                    self._open_links().pool.clear()
                except Exception as error:
                    if not self._connector.judge.is_conflict(error):
                        raise
                    await asyncio.sleep(random.uniform(0, min(_SHORTEST_PAUSE * 2**tries, _LONGEST_PAUSE)))
            return await self._once(work, repeatable=repeatable)

    async def _once(self, work: _Work[C, T], *, repeatable: bool) -> T:
        """Do work on a connection of the pool; raise `Stale` if that was lost and it is safe to do it again."""
        pool: Pool[C] = self._open_links().pool
        connection = await pool.acquire()
        keep = False
        try:
            answer = await work(connection)
            keep = True
        except Exception as error:
            judge = self._connector.judge
            if judge.was_never_sent(error) or (repeatable and judge.is_lost(error)):
                raise Stale(str(error)) from error
            keep = judge.spares_connection(error) and await _rolled_back(connection)
            raise
        finally:
            pool.release(connection, keep=keep)
        return answer

    def _do(self, script: Callable[[], Script[T]], connection: C, *, atomic: bool) -> Awaitable[T]:
        """Run a script on a connection."""
        return self._play(script, connection, atomic=atomic)

    async def _play(self, script: Callable[[], Script[T]], connection: C, *, atomic: bool) -> T:
        # Behind a pooler also a single statement needs a transaction: it takes two trips, to the same server.
        transaction = atomic or self._connector.pooled
        if transaction:
            await self._begin(connection)
        steps = script()
        name = script_name(steps)
        try:
            if not transaction:
                failpoint(f"before:{name}")
            answer = await self._connector.play(connection, steps, self._clock)
        finally:
            steps.close()
        if transaction:
            failpoint(f"before:{name}")
            await connection.execute("COMMIT")
        failpoint(f"after:{name}")
        return answer

    async def _begin(self, connection: C) -> None:
        try:
            await connection.execute(self._connector.begin)
        except Exception as error:
            if self._connector.judge.is_lost(error):
                raise Stale(str(error)) from error
            raise


async def _nothing(_connection: object) -> None:
    pass


async def _rolled_back(connection: Any) -> bool:
    """End the transaction, if one is open; False when that did not work."""
    if connection.is_in_transaction():
        try:
            await connection.execute("ROLLBACK")
        except Exception:  # noqa: BLE001 -- whatever it was, the connection is closed
            return False
    return True
