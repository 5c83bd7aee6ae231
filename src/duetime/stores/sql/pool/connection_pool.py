"""A small pool of connections.

Drivers have pools of their own, which reset each connection when it comes back. That is a round trip for every
verb, and we leave nothing behind that would have to be reset.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Generic

from duetime.errors import NotOpen, StoreUnavailable
from duetime.stores.sql.pool.connection import C, PooledConnection

_LONGEST_WAIT: Final = 30.0
"""How long a caller waits for a connection to become free, in seconds."""
_IDLE: Final = 60.0
"""How long a connection may lie unused, in seconds; the one used last is kept."""
_GRACE: Final = 5.0
"""How long `close` waits for connections that are in use, in seconds."""
_GOODBYE: Final = 1.0


class ConnectionPool(Generic[C]):
    """Up to `size` connections, opened when needed; the one used last is used next, waiters go first come first served."""

    def __init__(self, connect: Callable[[], Awaitable[C]], *, size: int) -> None:
        self._connect = connect
        self._size = size
        self._free = size
        """How many more callers may have a connection, an unused or a new one."""
        self._unused: list[tuple[C, float]] = []
        """With the time from which on each has been unused."""
        self._busy: set[C] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._trimming: asyncio.TimerHandle | None = None
        self._all_back: asyncio.Event | None = None
        """Set once the pool is closed and its last connection came back; None while it is open."""

    @property
    def has_room(self) -> bool:
        """Whether a caller gets a connection without waiting for another caller."""
        return self._free > 0

    async def acquire(self) -> C:
        """Return a connection for the caller alone, which must be released."""
        self._check_open()
        if self._free:
            self._free -= 1
        else:
            await self._wait()
            self._check_open()
        return self._take_unused() or await self._open()

    def unused(self) -> C | None:
        """Return the connection that was used last, if one is unused; it must be released."""
        connection = self._take_unused() if self._free else None
        if connection is not None:
            self._free -= 1
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
        self._free_place()
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
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(NotOpen("the store was closed while it was being used"))
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
                self._busy.add(connection)
                return connection
        return None

    async def _open(self) -> C:
        try:
            connection = await self._connect()
        except BaseException:
            self._free_place()
            raise
        if self._all_back is not None:
            connection.terminate()
        self._check_open()
        self._busy.add(connection)
        return connection

    async def _wait(self) -> None:
        """Wait until another caller releases a connection."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(_LONGEST_WAIT):
                await waiter
        except BaseException as error:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif not waiter.cancelled() and waiter.exception() is None:
                # It was given the place at the same moment.
                self._free_place()
            if isinstance(error, TimeoutError):
                raise StoreUnavailable(
                    f"all {self._size} connections have been busy for {_LONGEST_WAIT:.0f} seconds; raise ?pool= in the URL"
                ) from None
            raise

    def _free_place(self) -> None:
        """Give a place to the first caller who waits, or count it as free."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1

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
