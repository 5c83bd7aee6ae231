"""How long calls wait for a silent server, and which connections are closed then."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

DEFAULT_TIMEOUT: Final = 8.0
"""How long a short call waits for its answer, in seconds, unless the URL says otherwise."""
LONGEST_TIMEOUT: Final = 600
MOST_CONNECTIONS: Final = 1_000
"""How many calls a URL may allow at once."""
_PER_ROW: Final = 0.001
"""How much longer it waits for each row that it reads or writes."""
_FIRST_TRY_SHARE: Final = 0.6
"""The share of that time for one try of a call that can be made twice, so that it takes less than ten seconds in all."""
_SUSPICIOUS_WAIT: Final = 1.0
"""If a caller gives up after this time, in seconds, we take it that the server is silent."""
_GIVE_UP_SPACING: Final = 1.0
"""How long no more connections are given up, in seconds: those that are unused by then have answered meanwhile."""

CONNECT_TIMEOUT: Final = 5.0
"""How long it may take to open a connection, in seconds."""
# The last: after how many milliseconds without an acknowledgement the kernel ends a connection.
_TCP: Final = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}
SOCKET_OPTIONS: Final = {getattr(socket, name): _TCP[name] for name in _TCP if hasattr(socket, name)}
"""What makes the kernel notice a peer that is gone, where the platform knows it."""


class CallDeadline(NamedTuple):
    """How long a call may take, in seconds; None if only each of its statements has a limit."""

    first: float | None
    """The first try."""
    whole: float | None
    """All tries together."""


NO_DEADLINE: Final = CallDeadline(None, None)


@lru_cache
def call_deadline(
    rows: int | None, *, answer: float = DEFAULT_TIMEOUT, repeatable: bool = False
) -> CallDeadline:
    """Return how long a call of that many rows may take; None is for those that may take long."""
    if rows is None:
        return NO_DEADLINE
    first = answer * (_FIRST_TRY_SHARE if repeatable else 1) + rows * _PER_ROW
    return CallDeadline(first, 2 * first if repeatable else first)


def enable_keepalive(connection: object) -> None:
    """Have the kernel notice when the peer of a driver's connection is gone, if that is a TCP connection."""
    transport: asyncio.Transport | None = getattr(connection, "_transport", None)
    sock: socket.socket | None = None if transport is None else transport.get_extra_info("socket")
    if sock is not None and sock.family != getattr(socket, "AF_UNIX", None):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in SOCKET_OPTIONS.items():
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


class ServerTimeouts:
    """How long the calls of one store wait, and what is given up when no answer came; shared with its siblings in other threads."""

    def __init__(self, answer: float = DEFAULT_TIMEOUT) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self._watchers: tuple[tuple[asyncio.AbstractEventLoop, Callable[[], object]], ...] = ()
        self._lost_at = -_GIVE_UP_SPACING

    def deadline(self, rows: int | None = 1, *, repeatable: bool = False) -> CallDeadline:
        """Return how long a call of that many rows may take."""
        return call_deadline(rows, answer=self._answer, repeatable=repeatable)

    def one_try(self, *, repeatable: bool = False) -> asyncio.Timeout:
        """Limit the time of one try of a short call."""
        return asyncio.timeout(self.deadline(repeatable=repeatable).first)

    def heed(self, error: BaseException, *, waited: float = 0) -> None:
        """Give connections up where no answer came in time, also if a caller with a time-out of its own gave up first."""
        given_up = isinstance(error, asyncio.CancelledError) and waited > _SUSPICIOUS_WAIT
        if given_up or isinstance(error, TimeoutError):
            self.lose()

    def lose(self) -> None:
        """Have all connections given up that may have died with the one that did not answer in time."""
        now = time.monotonic()
        if now - self._lost_at < _GIVE_UP_SPACING:
            return
        self._lost_at = now
        here = asyncio._get_running_loop()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- None in a thread without one
        for loop, give_up in self._watchers:
            if loop is here:
                # At once: the next call must not find them.
                give_up()
            else:
                # A loop that was closed has no connections left.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(give_up)

    def watch(self, give_up: Callable[[], object]) -> Callable[[], None]:
        """Call a function in this event loop whenever connections are to be given up, until what is returned is called."""
        watcher = (asyncio.get_running_loop(), give_up)
        with self._lock:
            self._watchers = (*self._watchers, watcher)
        return lambda: self._forget(watcher)

    def interrupt(self, scope: asyncio.Timeout) -> Callable[[], None]:
        """Let a time-out expire as soon as connections are to be given up, until what is returned is called."""
        loop = asyncio.get_running_loop()

        def expire() -> None:
            # What another thread asks for may come when it is over.
            with contextlib.suppress(RuntimeError):
                scope.reschedule(loop.time())

        return self.watch(expire)

    def _forget(self, watcher: tuple[asyncio.AbstractEventLoop, Callable[[], object]]) -> None:
        with self._lock:
            self._watchers = tuple(each for each in self._watchers if each is not watcher)
