"""Hints to other processes, no more of them than are of use."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from duetime.stores.base import Hint

_SPACING: Final = 0.002
"""The shortest time between two hints of one process that say the same, in seconds: each one wakes every worker."""
_FLUSH: Final = 1.0


class Voice:
    """Lets hints go with calls unless the same was just said; then it is said again a moment later, once."""

    def __init__(self, publish: Callable[[Hint], Awaitable[object]]) -> None:
        self._publish = publish
        self._again_at: dict[Hint, float] = {}
        self._later: set[Hint] = set()
        """What will be said, and covers whatever is stored before that."""
        self._tasks: set[asyncio.Task[None]] = set()

    def with_call(self, hints: Sequence[Hint]) -> Sequence[Hint]:
        """Return those of some hints that go with a call."""
        if not hints:
            return ()
        now = asyncio.get_running_loop().time()
        due = [hint for hint in hints if self._again_at.get(hint, 0) <= now]
        for hint in due:
            # What names something is said too seldom to be remembered.
            if not hint.name:
                self._again_at[hint] = now + _SPACING
        return due

    def behind_call(self, hints: Sequence[Hint]) -> None:
        """Say the others soon, which tell of what is stored by now."""
        for hint in hints:
            if hint not in self._later:
                self._later.add(hint)
                task = asyncio.create_task(self._say(hint), name="duetime-voice")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Say what is left, unless that takes long."""
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=_FLUSH)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _say(self, hint: Hint) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._again_at[hint] - loop.time())
        self._later.discard(hint)
        self._again_at[hint] = loop.time() + _SPACING
        # Hints may be lost.
        with contextlib.suppress(Exception):
            await self._publish(hint)
