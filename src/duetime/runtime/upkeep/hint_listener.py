"""How a worker notices what concerns it: by hints, and by looking where they are vague or missing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from duetime.runtime.pacing import POLL_CHANGES, SMALL_FLEET
from duetime.runtime.service import Service, ServiceHealth, WorkerContext
from duetime.stores.base import Hint, Store

_FIRST_LOOK_DELAY = 0.01
"""Seconds after which a vague hint is looked into: it is mostly about a job, which comes first."""
_VAGUE_PAUSE = 0.05
"""Seconds in which vague hints are answered by one look."""
_LONGEST_VAGUE_PAUSE = 1.0
"""The same in a large fleet, where every worker gives such hints to every other."""
_CHECK_PAUSE = 10.0
"""Seconds after which it is asked again whether hints arrive."""


class HintListener(Service):
    """Passes hints on for as long as the worker lives."""

    name = "hint listener"
    finishes_round = False

    def __init__(self, store: Store, health: ServiceHealth, on_hint: Callable[[Hint], None]) -> None:
        super().__init__(store, health)
        self._on_hint = on_hint

    async def round(self) -> float | None:
        """Listen until the store has no more hints."""
        async for hint in self._store.wakeups():
            self._on_hint(hint)
        return 1.0


class ChangeWatch(Service):
    """Looks when a hint does not say what has changed, and while the hints of other processes do not arrive.

    A vague hint makes it look for jobs at once and for everything else soon after; in a large fleet, for both together
    and less often. While hints are missing, it looks for requests to this worker and for changed schedules; the fetcher
    looks for jobs by itself.
    """

    name = "change watch"

    def __init__(
        self,
        context: WorkerContext,
        *,
        look_for_jobs: Callable[[], None],
        look_for_workers: Callable[[], None],
        look_for_changes: Callable[[], None],
    ) -> None:
        super().__init__(context.store, context.health)
        self._fleet = context.fleet
        self._look_for_jobs = look_for_jobs
        self._look_for_workers = look_for_workers
        self._look_for_changes = look_for_changes
        self._loop = asyncio.get_running_loop()
        self._hinted = self._missing = False
        self._looked = 0.0

    def take_hint(self) -> None:
        """Look, if not at once then together with the next vague hints that come."""
        beyond = self._fleet.workers - SMALL_FLEET
        if beyond <= 0:
            self._look_for_jobs()
        if not self._hinted:
            self._hinted = True
            pause = min(_LONGEST_VAGUE_PAUSE, _VAGUE_PAUSE * max(1, beyond))
            self.wakeup.set_after(max(_FIRST_LOOK_DELAY, self._looked + pause - self._loop.time()))

    async def round(self) -> float | None:
        """Look if there was a hint, or if hints are missing; if they have just stopped, they may be about to go on."""
        was_missing, self._missing = self._missing, not self._store.hears_others
        if self._hinted:
            if self._fleet.workers > SMALL_FLEET:
                self._look_for_jobs()
            self._look_for_workers()
            self._looked, self._hinted = self._loop.time(), False
            self._look_for_changes()
        elif self._missing and was_missing:
            self._look_for_changes()
        return self._fleet.pause(POLL_CHANGES) if self._missing else _CHECK_PAUSE * random.uniform(0.8, 1.2)
