"""Stands in for the hints of other processes where those do not arrive."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from duetime.runtime.crowd import Crowd
from duetime.runtime.service import Health, Service

if TYPE_CHECKING:
    from duetime.stores.base import Store

DEAF: Final = 1.0
"""Seconds between looks for what others would have hinted at."""
_LONGEST: Final = 3.0
"""The same in a large fleet."""
_SPACING: Final = 0.01
"""Seconds between the looks of all workers, on average."""
_HEARING: Final = 10.0
"""Seconds after which it is asked again whether hints arrive, where no heartbeat does so."""


class Unheard(Service):
    """Looks for requests to this worker and for changed schedules, for as long as nobody can tell of them.

    New jobs are looked for by whoever has slots for them.
    """

    name = "stand-in for hints"

    def __init__(
        self, store: Store, health: Health, *, crowd: Crowd, look: Callable[[], None], watched: bool
    ) -> None:
        super().__init__(health)
        self._store = store
        self._crowd = crowd
        self._look = look
        self._watched = watched
        self._was_deaf = False

    def check(self) -> None:
        """Begin if hints do not arrive any more; called with every answer to a heartbeat that somebody has to hear of."""
        # Who has begun looks in its own time: its looks are answered here, too, and would bring on the next at once.
        if not self._was_deaf and not self._store.hears_others:
            self.wakeup.set()

    async def round(self) -> float | None:
        """Look, unless hints arrive; once they are missing for a moment only, they may be about to."""
        deaf = not self._store.hears_others
        if deaf and self._was_deaf:
            self._look()
        self._was_deaf = deaf
        if self._watched and not deaf:
            return None
        pause = self._crowd.share(DEAF, spacing=_SPACING, at_most=_LONGEST) if deaf else _HEARING
        return pause * random.uniform(0.8, 1.2)
