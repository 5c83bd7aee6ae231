"""Tells the store that claims taken ahead have begun, unless they end first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.runtime.run import Run
from duetime.runtime.service import Health, Service

if TYPE_CHECKING:
    from duetime.stores.base import JobStore

_PATIENCE = 0.1
"""Seconds a run may last before its start is worth a write; shorter ones are told by their settlement."""


class StartMarker(Service):
    """Marks starts in groups; of a claim that is due and not marked, a rescue cannot tell whether it began."""

    name = "start marker"

    def __init__(self, store: JobStore, health: Health) -> None:
        super().__init__(health)
        self._store = store
        self._fresh: dict[Run, None] = {}
        self._aged: list[Run] = []
        self._asleep = True

    def add(self, run: Run) -> None:
        """Watch a run that was claimed ahead."""
        self._fresh[run] = None
        if self._asleep:
            self._asleep = False
            self.wakeup.set()

    def forget(self, run: Run) -> None:
        """Let go of a run that has ended: most are short, and would pile up here until the next round."""
        self._fresh.pop(run, None)

    async def round(self) -> float | None:
        """Mark what has been running since the last round and still is."""
        lasting = [run for run in self._aged if run.task is not None and not run.task.done()]
        if lasting:
            await self._store.mark_started(
                [run.claim.token for run in lasting], min(run.started_at for run in lasting)
            )
        self._aged, self._fresh = list(self._fresh), {}
        self._asleep = not self._aged
        return None if self._asleep else _PATIENCE
