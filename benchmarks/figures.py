"""Numbers from samples."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the middle and the tail of some durations."""
    return {"p50": percentile(values, 0.5), "p99": percentile(values, 0.99)}


def steady_rate(moments: Sequence[float]) -> float:
    """Return how often something happened in a unit of time, without the tenth at the beginning and at the end."""
    ordered = sorted(moments)
    first, last = len(ordered) // 10, len(ordered) - 1 - len(ordered) // 10
    took = ordered[last] - ordered[first]
    return (last - first) / took if took else 0.0
