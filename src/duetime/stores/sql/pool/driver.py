"""Runs scripts on pooled connections: a single statement in one round trip, several in a transaction."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from duetime.errors import NotOpen
from duetime.failpoints import failpoint
from duetime.model.time import Clock, Micros
from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.base.encryption import examine_tls
from duetime.stores.base.local_hints import HintSubscriber, HintSubscribers
from duetime.stores.sql.driver import (
    FORKED,
    NOT_OPEN,
    CallerTransaction,
    DriverHandlerTransaction,
    Script,
    ScriptMaker,
    SingleQueryScript,
    script_name,
)
from duetime.stores.sql.pool.connections import C, ConnectionPool, ConnectionUse, Connector
from duetime.stores.sql.pool.errors import StaleConnection
from duetime.stores.sql.pool.hints import HintConnection, HintSender
from duetime.stores.sql.pool.transactions import PooledCallerTransaction, PooledHandlerTransaction
from duetime.stores.sql.transactions.caller import take_sqlalchemy

T = TypeVar("T")

_SHORTEST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.2
_PROBE: Final = "SELECT 1"
_ROLLBACK_TIMEOUT: Final = 1.0
"""How long a transaction may take to be rolled back, in seconds, before its connection is closed instead."""


@dataclass(frozen=True, slots=True)
class SharedHints:
    """What the drivers of one store have in common, each in its event loop: who hears hints in this process."""

    subscribers: HintSubscribers = field(default_factory=HintSubscribers)
    sender: str = field(default_factory=lambda: secrets.token_hex(4))
    """Names us in hints, so that we can tell our own."""


@dataclass(frozen=True, slots=True)
class OpenConnections(Generic[C]):
    """What there is while a driver is open; two of the pools may be the same one."""

    verbs: ConnectionPool[C]
    handlers: ConnectionPool[C]
    """Apart, so that verbs do not wait for handlers and never meet what they have set."""
    sender: HintSender[C]
    pid: int = field(default_factory=os.getpid)
    """The process whose connections these are; a forked child must not use them."""


class PooledDriver(ABC, Generic[C]):
    """The part of a driver that is the same for all databases on a network.

    A sibling, which is for another event loop, has a single connection, and makes it when it is needed.
    """

    single_writer = False
    persistent = True
    sender: ClassVar[type[HintSender[Any]]]
    listener: ClassVar[type[HintConnection[Any]]]
    transaction: ClassVar[type[PooledHandlerTransaction[Any]]]

    def __init__(
        self,
        connector: Connector[C],
        *,
        namespace: str = "duetime",
        clock: Clock | None = None,
        pool: int = 10,
        shared: SharedHints | None = None,
    ) -> None:
        """`shared` is given to siblings."""
        self._connector = connector
        self._namespace = namespace
        self._clock = clock
        self._size = pool
        self._is_sibling = shared is not None
        self._shared = shared or SharedHints()
        self._connections: OpenConnections[C] | None = None
        self._unwatch: Callable[[], None] = lambda: None
        self._listeners: list[HintConnection[C]] = []

    @abstractmethod
    def _examine(self) -> Script[list[DoctorCheck]]:
        """Look at the server's version and settings."""

    def sibling(self) -> Self:
        """Return a driver for another event loop."""
        return type(self)(self._connector, namespace=self._namespace, clock=self._clock, shared=self._shared)

    def lend(self, *, timeout: Micros) -> DriverHandlerTransaction:
        """Return a transaction on a connection that no verb of the store waits for."""
        pool = self._open_connections().handlers
        return self.transaction(pool, self._connector, clock=self._clock, timeout=timeout)

    async def open(self) -> None:
        """Connect once, to see that it works; a sibling does so when it is first used."""
        if self._connections is not None:
            return
        self._connections = self._make_connections()
        self._unwatch = self._connector.timeouts.watch(self._close_unused)
        if self._is_sibling:
            return
        try:
            pool = self._connections.verbs
            pool.release(await pool.acquire(), keep=True)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Send the last hints, let running verbs end, and disconnect."""
        connections, self._connections = self._own_connections(), None
        self._unwatch()
        if connections is not None:
            await connections.sender.close()
            await connections.handlers.close()
            await connections.verbs.close()

    async def write(
        self,
        script: ScriptMaker[T],
        *,
        atomic: bool = True,
        hint: Hint | None = None,
        rows: int | None = 1,
        again: ScriptMaker[T] | None = None,
    ) -> T:
        """Run a script in one transaction, or as a single statement that is its own; again after a conflict."""
        answer = await self._run(script, again, atomic=atomic, rows=rows)
        if hint is not None:
            self.hint(hint)
        return answer

    def write_blocking(self, script: ScriptMaker[T], *, hint: Hint | None = None) -> T | None:  # noqa: ARG002
        """Refuse: the connections belong to an event loop."""
        return None

    async def read(self, script: ScriptMaker[T], *, rows: int | None = 1) -> T:
        """Run a script that changes nothing; again if the connection was lost."""
        return await self._run(script, script, atomic=False, rows=rows)

    def borrow(self, tx: object) -> CallerTransaction:
        """Take a caller's connection, which belongs to the event loop that asks."""
        connector = self._connector
        if (connection := connector.taken(tx)) is not None:
            return PooledCallerTransaction(tx, connection, connector, clock=self._clock)
        return take_sqlalchemy(
            tx, dialect=connector.sqlalchemy_name, clock=self._clock, native=connector.accepted
        )

    def hint(self, hint: Hint) -> None:
        """Tell this process at once, and others in the background."""
        self._shared.subscribers.notify(hint)
        if (connections := self._own_connections()) is not None:
            connections.sender.send(hint)

    def wakeups(self) -> AsyncIterator[Hint]:
        """Yield our own hints and those of other processes."""
        return self._shared.subscribers.hints_while(self._listen)

    async def _listen(self, subscriber: HintSubscriber) -> None:
        names = {"namespace": self._namespace, "name": self._shared.sender}
        listener = self.listener(self._connector, subscriber.put, **names, clock=self._clock)
        self._listeners.append(listener)
        try:
            await listener.run()
        finally:
            self._listeners.remove(listener)

    @property
    def hears_others(self) -> bool:
        """Whether hints of other processes arrive at present."""
        return any(listener.up for listener in self._listeners)

    async def doctor(self) -> list[DoctorCheck]:
        """Look at the server's version and settings, and at how connections to it are encrypted."""
        found = await self.read(self._examine)
        pool, option = self._open_connections().verbs, self._connector.errors.place.authority
        connection = await pool.acquire()
        raw: Any = getattr(connection, "raw", connection)
        try:
            tls = examine_tls(
                raw._transport,  # noqa: SLF001 -- no public name leads to it
                encrypt=f"set up TLS on the server, and add ?{option}=ca.pem to the URL",
                verify=f"add ?{option}=ca.pem to the URL, with the certificate of the authority that signed the server's",
            )
        finally:
            pool.release(connection, keep=True)
        return [*found, tls]

    def _make_connections(self) -> OpenConnections[C]:
        """Make the pools; connect to nothing."""
        if self._is_sibling:
            verbs = handlers = self._pool("sibling", 1)
        else:
            verbs, handlers = self._pool("verbs", self._size), self._pool("handlers", self._size)
        sender = self.sender(self._connector, verbs, namespace=self._namespace, name=self._shared.sender)
        return OpenConnections(verbs, handlers, sender)

    def _pool(self, use: ConnectionUse, size: int) -> ConnectionPool[C]:
        return ConnectionPool(partial(self._connector.connect, use), size=size)

    def _open_connections(self) -> OpenConnections[C]:
        if self._connections is None:
            raise NotOpen(NOT_OPEN)
        if self._connections.pid != os.getpid():
            raise NotOpen(FORKED)
        return self._connections

    def _close_unused(self) -> None:
        """Close the unused connections: where one does not answer, the others may be dead as well."""
        if (connections := self._own_connections()) is not None:
            connections.verbs.clear()
            connections.handlers.clear()

    def _own_connections(self) -> OpenConnections[C] | None:
        """Return what is open, unless a fork has inherited it from the process that opened it."""
        connections = self._connections
        return connections if connections is not None and connections.pid == os.getpid() else None

    async def _run(
        self,
        script: ScriptMaker[T],
        again: ScriptMaker[T] | None,
        *,
        atomic: bool,
        rows: int | None,
    ) -> T:
        """Run a script as often as conflicts and a lost connection make it necessary."""
        connector = self._connector
        errors, timeouts = connector.errors, connector.timeouts
        left, whole = timeouts.deadline(rows, repeatable=again is not None)
        lost = False
        conflict: BaseException | None = None
        with errors:
            for tries in count(1):
                pool = self._open_connections().verbs
                began = time.monotonic()
                if lost and pool.has_room:
                    async with asyncio.timeout(whole):
                        connection = await pool.acquire()
                    left = _time_left(whole, began)
                else:
                    # Not counted: to wait until others are served is no sign of a silent server.
                    connection = await pool.acquire()
                    began = time.monotonic()
                keep, pause = False, 0.0
                try:
                    answer = await self._play(script, connection, left, atomic=atomic)
                    keep = True
                    return answer
                except BaseException as error:
                    if conflict is None:
                        # A caller may give up on what takes long although the server is not silent.
                        timeouts.heed(error, waited=0 if left is None else time.monotonic() - began)
                    elif isinstance(error, TimeoutError):
                        raise conflict from None
                    # What may take long, and did, is not sent again.
                    stale = self._is_stale(error, timed=left is not None, repeatable=again is not None)
                    if stale and lost:
                        raise _cause(error) from None
                    keep = not stale and errors.spares_connection(error) and await _rolled_back(connection)
                    if stale:
                        lost = True
                        pool.clear()
                        script, again = again or script, None
                    elif errors.is_conflict(error) and tries < connector.most_tries:
                        conflict = error
                        pause = random.uniform(0, min(_SHORTEST_PAUSE * 2**tries, _LONGEST_PAUSE))
                    else:
                        raise
                finally:
                    pool.release(connection, keep=keep)
                await asyncio.sleep(pause)
                left = whole = _time_left(whole, began)
        raise AssertionError  # pragma: no cover - the last try returns or raises

    def _is_stale(self, error: BaseException, *, timed: bool, repeatable: bool) -> bool:
        """Whether the connection is lost, and it is safe to run a script again on another one."""
        errors = self._connector.errors
        if isinstance(error, StaleConnection) or errors.was_never_sent(error):
            return True
        return repeatable and (timed if isinstance(error, TimeoutError) else errors.is_lost(error))

    async def _play(self, script: ScriptMaker[T], connection: C, within: float | None, *, atomic: bool) -> T:
        """Run a script on a connection within a time."""
        connector = self._connector
        single: SingleQueryScript[T] | None = _single(script)
        # Behind a pooler also a single statement needs a transaction: it takes two trips, to the same server.
        alone = not connector.pooled and (not atomic or single is not None)
        if not alone:
            async with asyncio.timeout(within):
                return await self._play_in_transaction(script, connection, long=within is None)
        if within is None:
            # It has no effect yet.
            await self._reach(connection, _PROBE, long=True)
        if single is not None:
            failpoint(f"before:{single.verb}")
            now = self._clock.now() if self._clock else None
            rows = await connector.ask(connection, single.query, now, within)
            failpoint(f"after:{single.verb}")
            return single.answer(rows)
        steps = script()
        name = script_name(steps)
        with closing(steps):
            failpoint(f"before:{name}")
            answer = await connector.play(connection, steps, self._clock, within)
        failpoint(f"after:{name}")
        return answer

    async def _play_in_transaction(self, script: ScriptMaker[T], connection: C, *, long: bool) -> T:
        await self._reach(connection, self._connector.begin, long=long)
        steps = script()
        name = script_name(steps)
        with closing(steps):
            answer = await self._connector.play(connection, steps, self._clock)
        failpoint(f"before:{name}")
        await connection.execute("COMMIT")
        failpoint(f"after:{name}")
        return answer

    async def _reach(self, connection: C, statement: str, *, long: bool) -> None:
        """Send what has no effect yet, in a short time also before what may take long.

        Raises `StaleConnection` if the connection is lost.
        """
        timeouts = self._connector.timeouts
        try:
            async with timeouts.one_try(repeatable=True) if long else nullcontext():
                await connection.execute(statement)
        except Exception as error:
            timeouts.heed(error)
            if self._connector.errors.is_lost(error) or isinstance(error, TimeoutError):
                raise StaleConnection(str(error)) from error
            raise


def _single(script: Callable[[], Any]) -> Any:
    found: object = script
    return found if isinstance(found, SingleQueryScript) else None  # pyright: ignore[reportUnknownVariableType] -- of what it returns


def _cause(error: BaseException) -> BaseException:
    return error.__cause__ or error if isinstance(error, StaleConnection) else error


def _time_left(whole: float | None, began: float) -> float | None:
    """Return what is left of a time."""
    return None if whole is None else max(0.0, whole - (time.monotonic() - began))


async def _rolled_back(connection: Any) -> bool:
    """End the transaction, if one is open; False when that did not work."""
    if connection.is_in_transaction():
        try:
            async with asyncio.timeout(_ROLLBACK_TIMEOUT):
                await connection.execute("ROLLBACK")
        except Exception:  # noqa: BLE001 -- whatever it was, the connection is closed
            return False
    return True
