"""Passes the store's hints on to the services they concern."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from duetime.runtime.service import Health, Service
from duetime.stores.base import Hint

if TYPE_CHECKING:
    from duetime.stores.base import Store


class HintListener(Service):
    """Hears hints for as long as the worker lives."""

    name = "hint listener"
    finishes_round = False

    def __init__(self, store: Store, health: Health, hear: Callable[[Hint], None]) -> None:
        super().__init__(health)
        self._store = store
        self._hear = hear

    async def round(self) -> float | None:
        """Listen until the store has nothing more to say."""
        async for hint in self._store.wakeups():
            self._hear(hint)
        return 1.0
