"""Dramatiq on Redis."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Command, Job, Plan, Settings, Unsupported, first_job, piped, record

_LATER = "dramatiq:default.DQ"
_EAGER = {"worker_timeout": 10}


class Adapter(base.Adapter):
    """A broker with the actor that everyone runs."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        logging.getLogger("dramatiq").setLevel(logging.ERROR)
        self._broker = RedisBroker(url=url)

        @dramatiq.actor(broker=self._broker, actor_name="note")
        def note(number: int, due: float) -> None:
            record(number, due)

        self._note: Any = note

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        yield Client(self.url, self._note)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        worker = dramatiq.Worker(self._broker, **(_EAGER if settings.eager else {}))
        ready()
        worker.start()
        await asyncio.get_running_loop().create_future()


class Client(base.Client):
    """Calls that block, and so are made one after the other; there is no bulk call."""

    def __init__(self, url: str, actor: Any) -> None:
        self._url = url
        self._actor = actor

    async def put(self, job: Job) -> None:
        self._actor.send(*job)

    async def put_at(self, job: Job) -> None:
        """Send one message with a delay in milliseconds, which workers take at once and hold in memory."""
        delay = math.ceil((job.due - time.time()) * 1000)
        self._actor.send_with_options(args=job, delay=max(0, delay))

    async def fill(self, count: int) -> None:
        # Here, since the memory of workers is measured, and this is not theirs.
        from redis import Redis

        await self.put_at(first_job())
        with Redis.from_url(self._url) as client:
            (stored,) = client.hvals(f"{_LATER}.msgs")
        piped(self._url, _like(stored, count - 1))

    async def schedules(self, plan: Plan) -> list[float]:
        raise Unsupported("no schedules")


def _like(stored: bytes, count: int) -> Iterator[Command]:
    message = dramatiq.Message.decode(stored)
    for n in range(count):
        own = f"later{n}"
        options = {"redis_message_id": own, "eta": message.options["eta"] + n * 1000}
        yield "HSET", f"{_LATER}.msgs", own, message.copy(message_id=own, options=options).encode()
        yield "RPUSH", _LATER, own
