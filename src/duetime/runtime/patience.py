"""How long a worker waits before it asks for jobs that nobody has told it of."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from duetime.runtime.crowd import Crowd

if TYPE_CHECKING:
    from duetime.stores.base import Store

POLL_HEARING = 10.0
"""Seconds between looks when hints of other processes arrive and no heartbeat looks: only insurance."""
POLL_DEAF = 0.25
"""Seconds between looks when they do not."""

_FUTILE_PAUSE = 0.02
_LONGEST_FUTILE_PAUSE = 0.5


class Patience:
    """Spaces looks out over a fleet, and claims for which others were faster."""

    def __init__(self, store: Store, crowd: Crowd) -> None:
        self._store = store
        self._crowd = crowd
        self._futile = 0

    def until_next_look(self) -> float:
        """Return after how many seconds to look for what no hint has told."""
        # Whoever looks finds what any of them would; but not all work on the same queues, hence the bounds.
        if self._store.hears_others:
            return _jittered(self._crowd.share(POLL_HEARING, spacing=0.2, at_most=60.0))
        return _jittered(self._crowd.share(POLL_DEAF, spacing=0.01, at_most=2.0))

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
