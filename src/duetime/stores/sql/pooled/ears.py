"""Those who wait for hints, each with a connection that listens for as long as it waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from duetime.stores.base import Hint
from duetime.stores.base.subscribers import Subscribers


class Ear(Protocol):
    """What listens to other processes."""

    @property
    def up(self) -> bool:
        """Whether hints of others arrive at present."""
        ...

    async def run(self) -> None:
        """Listen until cancelled."""
        ...


class Ears:
    """The ears of a driver; `make` returns one that gives the hints of others to a function."""

    def __init__(self, subscribers: Subscribers, make: Callable[[Callable[[Hint], None]], Ear]) -> None:
        self._subscribers = subscribers
        self._make = make
        self._ears: list[Ear] = []

    @property
    def up(self) -> bool:
        """Whether there is a connection that listens."""
        return any(ear.up for ear in self._ears)

    async def wakeups(self) -> AsyncGenerator[Hint]:
        """Yield our own hints and those of other processes."""
        with self._subscribers.listening() as subscriber:
            ear = self._make(subscriber.put)
            self._ears.append(ear)
            listening = asyncio.create_task(ear.run(), name="duetime-listen")
            try:
                async for hint in subscriber.hints():
                    yield hint
            finally:
                self._ears.remove(ear)
                listening.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await listening
