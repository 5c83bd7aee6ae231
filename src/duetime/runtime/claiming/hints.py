"""Hints that something has changed in the store, and the polling that stands in for them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from duetime.runtime.fleet_pacing import SMALL_FLEET, FleetPacing
from duetime.runtime.service import HealthObserver, Service
from duetime.stores.base import Hint

if TYPE_CHECKING:
    from duetime.stores.base import Store


class HintListener(Service):
    """Hears hints for as long as the worker lives."""

    name = "hint listener"
    finishes_round = False

    def __init__(self, store: Store, health: HealthObserver, hear: Callable[[Hint], None]) -> None:
        super().__init__(health)
        self._store = store
        self._hear = hear

    async def round(self) -> float | None:
        """Listen until the store has nothing more to say."""
        async for hint in self._store.wakeups():
            self._hear(hint)
        return 1.0


_FIRST_LOOK_DELAY = 0.01
"""Seconds after which a vague hint is looked into: what it is about is mostly a job, which comes first."""
_UNSPECIFIC_PAUSE = 0.05
"""Seconds in which vague hints are answered by one look."""
_LONGEST_UNSPECIFIC_PAUSE = 1.0
"""The same in a large fleet, where every worker gives such hints to every other."""


class UnspecificHints:
    """Looks for jobs at once and around soon after; in a large fleet for both together, and less often."""

    def __init__(
        self, crowd: FleetPacing, *, look_for_jobs: Callable[[], None], look_around: Callable[[], None]
    ) -> None:
        self._crowd = crowd
        self._look_for_jobs = look_for_jobs
        self._look_around = look_around
        self._loop = asyncio.get_running_loop()
        self._looking: asyncio.TimerHandle | None = None
        self._looked = 0.0

    def hear(self) -> None:
        """Look, if not at once then together with the next ones that come."""
        if self._crowd.workers <= SMALL_FLEET:
            self._look_for_jobs()
        if self._looking is None:
            pause = self._crowd.share(
                _UNSPECIFIC_PAUSE,
                spacing=_UNSPECIFIC_PAUSE,
                at_most=_LONGEST_UNSPECIFIC_PAUSE,
                among=self._crowd.workers - SMALL_FLEET,
            )
            wait = max(_FIRST_LOOK_DELAY, self._looked + pause - self._loop.time())
            self._looking = self._loop.call_later(wait, self._look)

    def _look(self) -> None:
        self._looking = None
        self._looked = self._loop.time()
        if self._crowd.workers > SMALL_FLEET:
            self._look_for_jobs()
        self._look_around()


FALLBACK_PAUSE: Final = 1.0
"""Seconds between looks for what others would have hinted at."""
_LONGEST_FALLBACK_PAUSE: Final = 3.0
"""The same in a large fleet."""
_FALLBACK_SPACING: Final = 0.01
"""Seconds between the looks of all workers, on average."""
_HINTS_CHECK_PAUSE: Final = 10.0
"""Seconds after which it is asked again whether hints arrive, where no heartbeat does so."""


class HintFallback(Service):
    """Looks for requests to this worker and for changed schedules, for as long as nobody can tell of them.

    New jobs are looked for by whoever has slots for them.
    """

    name = "stand-in for hints"

    def __init__(
        self,
        store: Store,
        health: HealthObserver,
        *,
        crowd: FleetPacing,
        look: Callable[[], None],
        watched: bool,
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
        pause = (
            self._crowd.share(FALLBACK_PAUSE, spacing=_FALLBACK_SPACING, at_most=_LONGEST_FALLBACK_PAUSE)
            if deaf
            else _HINTS_CHECK_PAUSE
        )
        return pause * random.uniform(0.8, 1.2)


POLL_WITH_HINTS = 10.0
"""Seconds between looks when hints of other processes arrive and no heartbeat looks: only insurance."""
POLL_WITHOUT_HINTS = 0.25
"""Seconds between looks when they do not."""

_FUTILE_PAUSE = 0.02
_LONGEST_FUTILE_PAUSE = 0.5


class PollingPolicy:
    """Spaces looks out over a fleet, and claims for which others were faster."""

    def __init__(self, store: Store, crowd: FleetPacing) -> None:
        self._store = store
        self._crowd = crowd
        self._futile = 0

    def until_next_look(self) -> float:
        """Return after how many seconds to look for what no hint has told."""
        # Whoever looks finds what any of them would; but not all work on the same queues, hence the bounds.
        if self._store.hears_others:
            return _jittered(self._crowd.share(POLL_WITH_HINTS, spacing=0.2, at_most=60.0))
        return _jittered(self._crowd.share(POLL_WITHOUT_HINTS, spacing=0.01, at_most=2.0))

    def until_next_claim(self) -> float:
        """Return after how many seconds to claim what is seen to be due."""
        # Usually it came due after the last claim. Claims that keep coming back empty are spaced out.
        return 0 if self._futile <= 1 else min(_LONGEST_FUTILE_PAUSE, _FUTILE_PAUSE * 2**self._futile)

    def learn(self, *, found: bool) -> None:
        """Take in whether a claim has brought anything."""
        self._futile = 0 if found else self._futile + 1

    def renew(self) -> None:
        """Forget the races lost before: they say nothing about jobs that have just come."""
        self._futile = 0


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.8, 1.2)
