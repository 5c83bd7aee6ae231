"""Calls of one server on connections that are kept at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from redis.asyncio import ConnectionPool

from duetime.errors import NotOpen


class Lines:
    """Makes calls on connections that are taken from a pool once and kept.

    A call by the client itself takes twice the time: it goes through the pool, watches each step with a timer of its
    own, and measures all that.
    """

    def __init__(self, pool: ConnectionPool, *, most: int) -> None:
        self._pool = pool
        self._turns = asyncio.Semaphore(most)
        self._free: list[Any] = []
        self._doubtful: set[Any] = set()
        self._closed = False

    def close(self) -> None:
        """Make no more calls, not even those that wait for their turn; the lines themselves are the pool's to close."""
        self._closed = True

    def give_up(self) -> None:
        """Connect the unused lines anew before they are used: where one does not answer, the others may be dead as well."""
        self._doubtful.update(self._free)

    async def call(self, *words: Any, within: float | None) -> Any:
        """Return what the server answers; raises `TimeoutError` if that takes longer.

        The wait for a turn is not counted: it ends, because each call before it does.
        """
        async with self._turns, asyncio.timeout(within):
            if self._closed:
                raise NotOpen("the store is not open")
            line: Any = self._free.pop() if self._free else await self._new()
            try:
                if line in self._doubtful:
                    self._doubtful.discard(line)
                    await line.disconnect(nowait=True)
                # Also reconnects one that was lost, for example by the call before.
                await self._pool.ensure_connection(line)
                await line.send_packed_command(_packed(words))
                return await line.read_response(disable_decoding=True)
            finally:
                self._free.append(line)
                if self._closed:
                    # It may have been connected after all were closed.
                    await line.disconnect(nowait=True)

    async def _new(self) -> Any:
        line: Any = await self._pool.get_connection()
        # The time is measured here, for the call as a whole.
        line.socket_timeout = None
        return line


def _packed(words: Iterable[str | bytes | int]) -> bytes:
    """Write a command down, which takes the client three times as long, since it is prepared for more kinds of words."""
    texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n%b" % (len(texts), b"".join(b"$%d\r\n%b\r\n" % (len(text), text) for text in texts))
