"""Answers hints that do not say what has changed: a heartbeat of another worker gives the same one as a new schedule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from duetime.runtime.crowd import FEW, Crowd

_FIRST = 0.01
"""Seconds after which a vague hint is looked into: what it is about is mostly a job, which comes first."""
_PAUSE = 0.05
"""Seconds in which vague hints are answered by one look."""
_LONGEST = 1.0
"""The same in a large fleet, where every worker gives such hints to every other."""


class VagueHints:
    """Looks for jobs at once and around soon after; in a large fleet for both together, and less often."""

    def __init__(
        self, crowd: Crowd, *, look_for_jobs: Callable[[], None], look_around: Callable[[], None]
    ) -> None:
        self._crowd = crowd
        self._look_for_jobs = look_for_jobs
        self._look_around = look_around
        self._loop = asyncio.get_running_loop()
        self._looking: asyncio.TimerHandle | None = None
        self._looked = 0.0

    def hear(self) -> None:
        """Look, if not at once then together with the next ones that come."""
        if self._crowd.workers <= FEW:
            self._look_for_jobs()
        if self._looking is None:
            pause = self._crowd.share(
                _PAUSE, spacing=_PAUSE, at_most=_LONGEST, among=self._crowd.workers - FEW
            )
            wait = max(_FIRST, self._looked + pause - self._loop.time())
            self._looking = self._loop.call_later(wait, self._look)

    def _look(self) -> None:
        self._looking = None
        self._looked = self._loop.time()
        if self._crowd.workers > FEW:
            self._look_for_jobs()
        self._look_around()
