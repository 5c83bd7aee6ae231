"""Hints to other processes, no more of them than are of use."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from duetime.stores.base import Hint

_SPACING: Final = 0.002
"""The shortest time between two hints of one process that say the same, in seconds: each one wakes every worker."""
_PATIENCE: Final = 0.001
"""How long one that may be said waits for a call to go with, which costs far less than to be said alone."""
_FLUSH: Final = 1.0


class Voice:
    """Lets hints go with calls unless the same was just said; then it is said again a moment later, once."""

    def __init__(self, publish: Callable[[Hint], Awaitable[object]]) -> None:
        self._publish = publish
        self._again_at: dict[Hint, float] = {}
        self._later: set[Hint] = set()
        """What will be said, with a call or alone, and covers whatever is stored before that."""
        self._held: Counter[Hint] = Counter()
        """How often each was held back."""
        self._tasks: dict[Hint, asyncio.Task[None]] = {}

    def with_call(self, hints: Sequence[Hint]) -> Mapping[Hint, int]:
        """Return those of some hints that go with a call, and how often each had been held back when it was sent."""
        if not hints:
            return {}
        now = asyncio.get_running_loop().time()
        due = [hint for hint in hints if self._again_at.get(hint, 0) <= now]
        for hint in due:
            # What names something is said too seldom to be remembered.
            if not hint.name:
                self._again_at[hint] = now + _SPACING
        return {hint: self._held[hint] for hint in due}

    def behind_call(self, hints: Sequence[Hint], *, said: Mapping[Hint, int]) -> None:
        """Take note of what went with a call, and say the others soon, which tell of what is stored by now."""
        # One that was held back since then may be of a job that was stored after this call, and answered before it.
        self._later.difference_update(hint for hint, held in said.items() if held == self._held[hint])
        for hint in hints:
            if hint not in said:
                self._held[hint] += 1
                self._later.add(hint)
                task = self._tasks.get(hint)
                if task is None or task.done():
                    self._tasks[hint] = asyncio.create_task(self._say(hint), name="duetime-voice")

    async def close(self) -> None:
        """Say what is left, unless that takes long."""
        if tasks := self._tasks.values():
            _, left = await asyncio.wait(tasks, timeout=_FLUSH)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _say(self, hint: Hint) -> None:
        """Say a hint, unless it goes with a call before."""
        loop = asyncio.get_running_loop()
        while hint in self._later:
            wait = self._again_at[hint] + _PATIENCE - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            self._later.discard(hint)
            self._again_at[hint] = loop.time() + _SPACING
            # Hints may be lost.
            with contextlib.suppress(Exception):
                await self._publish(hint)
