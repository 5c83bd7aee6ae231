"""Connections: what a database's are asked for and by what they are made, and a small pool of them.

Drivers have pools of their own, which reset each connection when it comes back. That is a round trip for every
verb, and we leave nothing behind that would have to be reset.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from duetime.errors import NotOpen, StoreUnavailable
from duetime.model.time import Clock, Instant
from duetime.stores.base.timeouts import CONNECT_TIMEOUT, ServerTimeouts
from duetime.stores.sql.driver import Query, Script, play_async
from duetime.stores.sql.pool.errors import DatabaseErrors

_LONGEST_WAIT: Final = 30.0
"""How long a caller waits for a connection to become free, in seconds."""
_IDLE: Final = 60.0
"""How long a connection may lie unused, in seconds; the one used last is kept."""
_GRACE: Final = 5.0
"""How long `close` waits for connections that are in use, in seconds."""
_GOODBYE: Final = 1.0

T = TypeVar("T")


class PooledConnection(Protocol):
    """A connection that a pool can keep."""

    def is_closed(self) -> bool:
        """Whether it cannot be used any more, as far as can be told without asking the server."""
        ...

    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def terminate(self) -> None:
        """Close it at once."""

    async def close(self, *, timeout: float | None = None) -> None:
        """Close it in order."""

    async def execute(self, query: str, /) -> object:
        """Run a statement that returns nothing."""


C = TypeVar("C", bound=PooledConnection)
ConnectionUse: TypeAlias = Literal["verbs", "handlers", "sibling"]
"""Who uses a connection: the verbs of a store, handlers, or a sibling, for all that it does."""


class Connector(ABC, Generic[C]):
    """Makes connections to one database, and runs scripts on them."""

    most_tries: ClassVar[int]
    """How often a script is run that collides with others."""
    accepted: ClassVar[str]
    """What callers may give as their transaction."""
    sqlalchemy_name: ClassVar[str]
    """What SQLAlchemy calls the database."""
    how_to_begin: ClassVar[str]
    """How callers begin a transaction."""
    announces: ClassVar[bool]
    """Whether the commit of a caller can carry an announcement."""
    pooled = False
    """Whether there is a pooler in between, so that a single statement needs a transaction as well."""

    def __init__(self, errors: DatabaseErrors, *, timeout: float) -> None:
        self.errors = errors
        self.timeouts = ServerTimeouts(timeout)

    @property
    def begin(self) -> str:
        """The statement that begins a transaction of ours."""
        return "BEGIN"

    @property
    def local_bounds(self) -> str:
        """The text, perhaps empty, that bounds a transaction where the session cannot be trusted with it."""
        return ""

    async def clean(self, connection: C) -> bool:
        """Undo what a handler has left in a session; False if it is better to close the connection."""
        del connection
        return False

    async def connect(self, use: ConnectionUse = "verbs") -> C:
        """Return a connection that is ready for scripts; raise only our own errors."""
        with self.errors:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await self._connect(use)

    @abstractmethod
    async def _connect(self, use: ConnectionUse) -> C:
        """Return a connection that is ready for scripts."""

    async def play(
        self, connection: C, script: Script[T], clock: Clock | None, within: float | None = None
    ) -> T:
        """Run a script to its end, each statement within a time; with a clock of our own, all of it at one moment."""
        now = clock.now() if clock else None
        return await play_async(script, lambda query: self.ask(connection, query, now, within))

    @abstractmethod
    def ask(
        self, connection: C, query: Query, now: Instant | None, within: float | None
    ) -> Awaitable[list[Any]]:
        """Run a statement within a time, at a moment of our own clock if there is one."""

    @abstractmethod
    def taken(self, tx: object) -> C | None:
        """Return a caller's connection as we use it; None if it is not one."""


class ConnectionPool(Generic[C]):
    """Up to `size` connections, opened when needed; the one used last is used next, waiters go first come first served."""

    def __init__(self, connect: Callable[[], Awaitable[C]], *, size: int) -> None:
        self._connect = connect
        self._size = size
        self._places = asyncio.Semaphore(size)
        self._unused: list[tuple[C, float]] = []
        """With the time from which on each has been unused."""
        self._busy: set[C] = set()
        self._trimming: asyncio.TimerHandle | None = None
        self._all_back: asyncio.Event | None = None
        """Set once the pool is closed and its last connection came back; None while it is open."""

    @property
    def has_room(self) -> bool:
        """Whether a caller gets a connection without waiting for another caller."""
        return not self._places.locked()

    async def acquire(self) -> C:
        """Return a connection for the caller alone, which must be released."""
        self._check_open()
        if self._places.locked():
            await self._wait()
        else:
            await self._places.acquire()
        try:
            self._check_open()
            if (connection := self._take_unused()) is None:
                connection = await self._connect()
                if self._all_back is not None:
                    connection.terminate()
                    self._check_open()
        except BaseException:
            self._places.release()
            raise
        self._busy.add(connection)
        return connection

    def release(self, connection: C, *, keep: bool) -> None:
        """Take a connection back, and close it if it is not to be kept; the next caller who waits may have one."""
        self._busy.discard(connection)
        if keep and not connection.is_closed():
            self._unused.append((connection, time.monotonic()))
            if self._trimming is None and len(self._unused) > 1 and self._all_back is None:
                self._trimming = asyncio.get_running_loop().call_later(_IDLE, self._trim)
        else:
            connection.terminate()
        self._places.release()
        if self._all_back is not None and not self._busy:
            self._all_back.set()

    def clear(self) -> None:
        """Close the unused connections: where one was found lost, the others may be as well."""
        while self._unused:
            self._unused.pop()[0].terminate()

    async def close(self) -> None:
        """Close all connections, those in use when they come back or after a time of grace."""
        if self._all_back is not None:
            return
        self._all_back = asyncio.Event()
        if self._trimming is not None:
            self._trimming.cancel()
        # The first of those that wait finds the pool closed, and passes its place on to the next.
        self._places.release()
        if self._busy:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await self._all_back.wait()
        for connection in self._busy:
            connection.terminate()
        unused, self._unused = self._unused, []
        await asyncio.gather(*(_close_in_order(connection) for connection, _ in unused))

    def _check_open(self) -> None:
        if self._all_back is not None:
            raise NotOpen("the store is closed; use it inside `async with scheduler`")

    def _take_unused(self) -> C | None:
        while self._unused:
            connection, _ = self._unused.pop()
            if not connection.is_closed():
                return connection
        return None

    async def _wait(self) -> None:
        """Wait until another caller releases a connection."""
        try:
            async with asyncio.timeout(_LONGEST_WAIT):
                await self._places.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"no connection has been free for {_LONGEST_WAIT:.0f} seconds; raise ?pool= in the URL, which is {self._size}"
            ) from None

    def _trim(self) -> None:
        """Close what has not been used for a while, but for the connection that was used last."""
        longest_ago = time.monotonic() - _IDLE
        while len(self._unused) > 1 and self._unused[0][1] <= longest_ago:
            self._unused.pop(0)[0].terminate()
        again = len(self._unused) > 1
        self._trimming = asyncio.get_running_loop().call_later(_IDLE, self._trim) if again else None


async def _close_in_order(connection: PooledConnection) -> None:
    # Whatever goes wrong here, the connection is closed afterwards.
    with contextlib.suppress(Exception):
        await connection.close(timeout=_GOODBYE)
