"""Hints inside one process, from any thread to any event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from typing import Any

from duetime.stores.base import Hint


class HintSubscriber:
    """One listener; hints that say the same are kept once until they are taken."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._hints: dict[Hint, None] = {}

    def notify(self, hint: Hint) -> None:
        """Pass a hint on, from any thread."""
        # A loop that was closed has no listeners left.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.put, hint)

    def put(self, hint: Hint) -> None:
        """Keep a hint until it is taken, in the listener's own loop."""
        self._hints[hint] = None
        self._event.set()

    async def hints(self) -> AsyncIterator[Hint]:
        """Yield hints as they come."""
        while True:
            await self._event.wait()
            self._event.clear()
            hints, self._hints = self._hints, {}
            for hint in hints:
                yield hint


class HintSubscribers:
    """All listeners of one store in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: tuple[HintSubscriber, ...] = ()

    def notify(self, hint: Hint) -> None:
        """Pass a hint to every listener."""
        # Without the lock: a signal handler may come in between, and give a hint as well.
        for listener in self._all:
            listener.notify(hint)

    def tell(self, hint: Hint) -> None:
        """Do the same from a task: listeners of its own event loop have the hint at once, without waking the loop."""
        loop = asyncio.get_running_loop()
        for listener in self._all:
            if listener.loop is loop:
                listener.put(hint)
            else:
                listener.notify(hint)

    async def hints_while(
        self, listen: Callable[[HintSubscriber], Coroutine[Any, Any, None]]
    ) -> AsyncGenerator[Hint]:
        """Yield hints as they come; meanwhile a task listens for those of other processes, and passes them on."""
        with self.listening() as subscriber:
            task = asyncio.create_task(listen(subscriber), name="duetime-listen")
            try:
                async for hint in subscriber.hints():
                    yield hint
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    @contextlib.contextmanager
    def listening(self) -> Generator[HintSubscriber]:
        """Listen for the duration of the block."""
        subscriber = HintSubscriber()
        with self._lock:
            self._all = (*self._all, subscriber)
        try:
            yield subscriber
        finally:
            with self._lock:
                self._all = tuple(each for each in self._all if each is not subscriber)
