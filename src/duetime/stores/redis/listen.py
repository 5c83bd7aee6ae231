"""Hears the hints of other processes."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from duetime.stores.base import Hint

if TYPE_CHECKING:
    from duetime.stores.redis.calls import Calls

log = logging.getLogger("duetime.store")

_CHECK: Final = 15.0
"""How often a quiet connection is checked, in seconds: one that was cut without a word looks like a quiet one."""
_ANSWER: Final = 5.0
"""How long it may take to answer."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_INSIST: Final = 0.05
_ANY: Final = Hint("any")


class Listener:
    """One connection that listens while anybody wants to hear, made anew whenever it is lost."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._ears = 0
        self._task: asyncio.Task[None] | None = None
        self.up = False
        """Whether hints of others arrive at present."""

    async def hints(self) -> AsyncIterator[Hint]:
        """Yield hints until cancelled, of this process at once."""
        with self._calls.subscribers.listening() as subscriber:
            self._ears += 1
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name="duetime-listen")
            try:
                async for hint in subscriber.hints():
                    yield hint
            finally:
                self._ears -= 1
                if self._ears == 0:
                    await self.close()

    async def close(self) -> None:
        """Stop to listen."""
        task, self._task = self._task, None
        while task is not None and not task.done():
            # Again and again: the client loses a cancellation that comes at the same moment as a message.
            task.cancel()
            await asyncio.wait({task}, timeout=_INSIST)

    async def _run(self) -> None:
        """Listen until cancelled.

        Gives the hint `any` whenever listening begins or breaks off: something may have been missed, and whoever
        relied on hearing must know that it does not.
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._listen()
            except Exception as error:  # noqa: BLE001 - who gives up hears nothing any more, and nobody knows
                log.debug("hints of other processes do not arrive at present: %s", error)
            finally:
                heard = self.up
                if heard:
                    self._turn(up=False)
            pause = _FIRST_PAUSE if heard else min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause * random.uniform(0.5, 1))

    async def _listen(self) -> None:
        async with asyncio.timeout(None) as scope:
            forget = self._calls.patience.interrupt(scope)
            try:
                await self._hear_all()
            finally:
                forget()

    async def _hear_all(self) -> None:
        async with self._calls.client.pubsub() as heard:
            await heard.subscribe(f"{self._calls.tag}:hints")
            while True:
                message = await _next(heard, within=_CHECK)
                if message is None:
                    await heard.ping()
                    message = await _next(heard, within=_ANSWER)
                if message is None:
                    self._calls.patience.lose()
                    raise TimeoutError("the server does not answer")
                if message[0] == b"subscribe":
                    self._turn(up=True)
                elif message[0] == b"message":
                    self._hear(message[2])

    def _turn(self, *, up: bool) -> None:
        self.up = up
        self._calls.subscribers.tell(_ANY)

    def _hear(self, data: bytes) -> None:
        sender, _, text = data.decode(errors="replace").partition(" ")
        if sender != self._calls.sender:
            self._calls.subscribers.tell(_hint(text))


async def _next(heard: Any, *, within: float) -> Any:
    """Return what the server says next, straight from the connection; nothing if it says nothing for so many seconds.

    The client's own way takes twice as long, and an idle worker waits for it whenever a job comes.
    """
    return await heard.connection.read_response(
        disable_decoding=True, timeout=within, disconnect_on_error=False
    )


def _hint(text: str) -> Hint:
    """Read a hint; `any` for what other software, or a later version, has sent."""
    try:
        return msgspec.convert(text.split(" "), Hint)
    except msgspec.ValidationError:
        return _ANY
