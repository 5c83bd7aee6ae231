"""What ran when, noted by the handlers themselves; the check that all of it was right; and numbers from it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class WrongRun(Exception):
    """A job was lost, ran twice or ran early: figures of such a run mean nothing."""


class Entry(NamedTuple):
    """One start: the job's number, when it was due and when it started, in microseconds of the wall clock."""

    number: int
    due_at: int
    started_at: int

    @property
    def late(self) -> int:
        """Microseconds after its due time."""
        return self.started_at - self.due_at


def now() -> int:
    """The wall clock in microseconds; on one machine it is also the clock of every store."""
    return time.time_ns() // 1000


def checked(entries: Iterable[Iterable[int]], *, expected: int) -> list[Entry]:
    """Return the entries of jobs 0 to `expected`, or raise when one is missing, doubled or early."""
    found = sorted(Entry(*entry) for entry in entries)
    numbers = [entry.number for entry in found]
    if numbers != list(range(expected)):
        raise WrongRun(
            f"{expected} jobs were enqueued, {len(set(numbers))} of them ran, {len(numbers)} times in all"
        )
    if early := [entry for entry in found if entry.late < 0]:
        raise WrongRun(f"{len(early)} jobs started before they were due, the first by {-early[0].late} us")
    return found


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
