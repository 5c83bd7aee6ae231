"""Claims for a worker that ends once nothing is due any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from duetime.runtime.claiming.fetcher import Fetcher
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.running.slots import Slots
from duetime.runtime.service import WorkerContext
from duetime.runtime.settling.settler import Settler

_LOOK_AGAIN: Final = 0.05
"""Seconds between looks while nothing runs, but something may still become due."""


class BurstFetcher(Fetcher):
    """Says when nothing is due any more, and nothing is left that could make something due."""

    def __init__(
        self,
        context: WorkerContext,
        *,
        slots: Slots,
        dispatcher: Dispatcher,
        settler: Settler,
        ready: Callable[[], bool],
        ended: Callable[[], int],
        on_done: Callable[[int], object],
    ) -> None:
        """`ready`: whether schedules have fired, and the jobs of dead workers were rescued.

        `ended`: how many runs have ended, also of other stores; `on_done` is told how many before this one was looked at.
        """
        super().__init__(context, slots=slots, dispatcher=dispatcher)
        self._settler = settler
        self._ready = ready
        self._ended = ended
        self._on_done = on_done

    def slot_freed(self) -> None:
        """Look after every run: what it has enqueued belongs to the burst."""
        super().slot_freed()
        self.wakeup.set()

    async def round(self) -> float | None:
        """Claim what is due; once there is no more, say so."""
        ready = self._ready()
        if not self._dispatcher.runs:
            # The end of a job may make others due.
            await self._settler.flush()
        self._caught_up, done, before = False, self._dispatcher.done, self._ended()
        pause = await super().round()
        if self._dispatcher.runs:
            return pause
        ended = self._dispatcher.done > done or self._settler.tokens()
        if not ready or ended or not self._caught_up:
            return _LOOK_AGAIN
        self._on_done(before)
        return None
