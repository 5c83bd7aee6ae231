"""Hints between processes: sends no more of them than are of use, and listens to those of others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from duetime.stores.base import Hint
from duetime.stores.base.backoff import backoff

if TYPE_CHECKING:
    from duetime.stores.redis.connection import FunctionCalls

_SAME_HINT_EVERY: Final = 0.002
"""The shortest time between two equal hints of one process, in seconds: each one wakes every worker."""
_WAIT_FOR_A_CALL: Final = 0.001
"""How long a hint that may be sent waits for a call to go with, which costs far less than a message of its own."""
_MANY_HINTS: Final = 100
_CLOSE_WITHIN: Final = 1.0
log = logging.getLogger("duetime.store")
_CHECK_EVERY: Final = 15.0
"""How often a quiet connection is checked, in seconds: one that was cut without a word looks like a quiet one."""
_ANSWER_WITHIN: Final = 5.0
"""How long it may take to answer."""
_CANCEL_AGAIN_AFTER: Final = 0.05
_ANY_HINT: Final = Hint("any")


class RedisHintSender:
    """Lets a hint go with a call unless the same was just sent; then it follows a moment later, once for all."""

    def __init__(self, publish: Callable[[Hint], Awaitable[object]]) -> None:
        self._publish = publish
        self._next_at: dict[Hint, float] = {}
        """Before this time of the loop's clock, a hint is held back."""
        self._held_back: set[Hint] = set()
        """Hints of what is stored, to be sent with a later call or alone."""
        self._tasks: dict[Hint, asyncio.Task[None]] = {}

    def with_call(self, hints: Iterable[Hint]) -> list[Hint]:
        """Return those of some hints that go with a call, which is about to be made."""
        now = asyncio.get_running_loop().time()
        if len(self._next_at) > _MANY_HINTS:
            self._forget_past(now)
        due = [hint for hint in hints if self._next_at.get(hint, 0) <= now]
        self._next_at |= dict.fromkeys(due, now + _SAME_HINT_EVERY)
        self._held_back.difference_update(due)
        return due

    def hold_back(self, hints: Iterable[Hint]) -> None:
        """Send hints soon that did not go with their call, which has been answered."""
        for hint in hints:
            self._held_back.add(hint)
            task = self._tasks.get(hint)
            if task is None or task.done():
                self._tasks[hint] = asyncio.create_task(self._send(hint), name="duetime-hints")

    async def close(self) -> None:
        """Send what is left, unless that takes long."""
        if tasks := self._tasks.values():
            _, left = await asyncio.wait(tasks, timeout=_CLOSE_WITHIN)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    def _forget_past(self, now: float) -> None:
        """Forget what holds nothing back any more: each lock has hints of its own."""
        held = self._held_back
        self._next_at = {hint: at for hint, at in self._next_at.items() if at > now or hint in held}
        self._tasks = {hint: task for hint, task in self._tasks.items() if not task.done()}

    async def _send(self, hint: Hint) -> None:
        """Send a hint, unless it goes with a call first."""
        loop = asyncio.get_running_loop()
        while hint in self._held_back:
            wait = self._next_at[hint] + _WAIT_FOR_A_CALL - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            elif self.with_call([hint]):
                # Hints may be lost.
                with contextlib.suppress(Exception):
                    await self._publish(hint)


class RedisHintListener:
    """One connection that listens while there are listeners, and connects anew whenever it is lost."""

    def __init__(self, calls: FunctionCalls) -> None:
        self._calls = calls
        self._listeners = 0
        self._task: asyncio.Task[None] | None = None
        self.up = False
        """Whether hints of others arrive at present."""

    async def hints(self) -> AsyncIterator[Hint]:
        """Yield hints until cancelled, of this process at once."""
        with self._calls.subscribers.listening() as subscriber:
            self._listeners += 1
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name="duetime-listen")
            try:
                async for hint in subscriber.hints():
                    yield hint
            finally:
                self._listeners -= 1
                if self._listeners == 0:
                    await self.close()

    async def close(self) -> None:
        """Stop to listen."""
        task, self._task = self._task, None
        while task is not None and not task.done():
            # Again and again: the client loses a cancellation that comes at the same moment as a message.
            task.cancel()
            await asyncio.wait({task}, timeout=_CANCEL_AGAIN_AFTER)

    async def _run(self) -> None:
        """Listen until cancelled.

        Gives the hint `any` whenever listening begins or breaks off: something may have been missed, and a worker
        that relies on hints must know that none arrive.
        """
        failures = 0
        while True:
            try:
                await self._listen()
            except Exception as error:  # noqa: BLE001 - a listener that gave up would never hear again
                log.debug("hints of other processes do not arrive at present: %s", error)
            finally:
                heard = self.up
                if heard:
                    self._set_up(up=False)
            failures = 0 if heard else failures + 1
            await asyncio.sleep(backoff(failures))

    async def _listen(self) -> None:
        async with asyncio.timeout(None) as scope:
            forget = self._calls.timeouts.interrupt(scope)
            try:
                await self._receive_all()
            finally:
                forget()

    async def _receive_all(self) -> None:
        async with self._calls.client.pubsub() as subscription:
            await subscription.subscribe(f"{self._calls.key_prefix}:hints")
            while True:
                message = await _next_message(subscription, within=_CHECK_EVERY)
                if message is None:
                    await subscription.ping()
                    message = await _next_message(subscription, within=_ANSWER_WITHIN)
                if message is None:
                    self._calls.timeouts.lose()
                    raise TimeoutError("the server does not answer")
                if message[0] == b"subscribe":
                    self._set_up(up=True)
                elif message[0] == b"message":
                    sender, _, text = message[2].decode(errors="replace").partition(" ")
                    if sender != self._calls.sender_id:
                        self._calls.subscribers.tell(_read_hint(text))

    def _set_up(self, *, up: bool) -> None:
        self.up = up
        self._calls.subscribers.tell(_ANY_HINT)


async def _next_message(subscription: Any, *, within: float) -> Any:
    """Return what the server says next, straight from the connection; `None` if it says nothing within that many seconds.

    The client's own way takes twice as long, and an idle worker waits for it whenever a job comes.
    """
    return await subscription.connection.read_response(
        disable_decoding=True, timeout=within, disconnect_on_error=False
    )


def _read_hint(text: str) -> Hint:
    """Read a hint; `any` for what other software, or a later version, has sent."""
    try:
        return msgspec.convert(text.split(" "), Hint)
    except msgspec.ValidationError:
        return _ANY_HINT
