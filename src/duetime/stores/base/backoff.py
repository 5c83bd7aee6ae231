"""Back-off: how long to wait after a failure, such as before trying to reconnect a lost connection."""

from __future__ import annotations

import random


def backoff(failures: int, *, first: float = 0.1, longest: float = 5.0) -> float:
    """Return how many seconds to wait after failures in a row: about twice as long each time, never in step with others."""
    bound = min(longest, first * 2 ** min(failures, 10))
    return random.uniform(bound / 2, bound)
