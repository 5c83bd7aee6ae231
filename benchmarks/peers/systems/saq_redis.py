"""SAQ on Redis."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from saq.queue.redis import RedisQueue

from benchmarks.peers.systems import saq_base
from benchmarks.peers.systems.base import Command, piped

_DAY = 86_400


class Adapter(saq_base.Adapter):
    """A queue with the defaults: no timer can be shorter than a second."""

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[RedisQueue]:
        """Connect the queue."""
        queue = RedisQueue.from_url(self.url)
        await queue.connect()
        try:
            yield queue
        finally:
            await queue.disconnect()

    def asking(self, queue: Any) -> Client:
        """Return the client of a queue that is connected."""
        return Client(self.url, queue)


class Client(saq_base.Client):
    """Enqueues one by one."""

    def __init__(self, url: str, queue: Any) -> None:
        super().__init__(queue)
        self._url = url

    async def copy(self, count: int) -> None:
        """Store what the script of `enqueue` stores."""
        ((name, _),) = await self._queue.redis.zrange("saq:default:incomplete", -1, -1, withscores=True)
        piped(self._url, _like(name, await self._queue.redis.get(name), count))


def _like(name: bytes, stored: bytes, count: int) -> Iterator[Command]:
    first = int(time.time()) + _DAY
    key = name.rpartition(b":")[2]
    for n in range(count):
        own = f"later{n}".encode()
        copy = name.replace(key, own)
        yield "SET", copy, stored.replace(key, own)
        yield "ZADD", "saq:default:incomplete", first + n, copy
