"""What samples of a long drain say: whether memory is flat, sizes are bounded and the rate lasts."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_QUARTERS = 4
_MEMORY_SHARE, _MEMORY_ROOM = 1.05, 3.0
"""How much more memory the last quarter may take than the second: this share, or so many megabytes."""
_RATE = 0.85
_LOG = 1.5
_SLACK = 1.1


class Sample(NamedTuple):
    """One look, a second or less after the one before."""

    seconds: float
    done: int
    memory: float
    """Of the worker, in megabytes, as its fair share."""
    table: float
    """Of the records and their indexes, in megabytes."""
    log: float
    """Of the write-ahead log as it lies on the disk, in megabytes."""
    dead: int = 0
    """Versions of rows that wait for vacuum, as the server knows."""


class Room(NamedTuple):
    """What the records take in the end, in megabytes."""

    end: float
    """When the last one was settled."""
    fresh: float
    """In a copy that was written anew."""
    encore: float
    """By how much the database grew when a tenth as many jobs more were drained, after a vacuum."""
    encore_fresh: float
    """How much those records take in a copy."""


class Bounds(NamedTuple):
    """What holds for an engine."""

    versions: float
    """How many versions of a row there may be at once, on average: PostgreSQL writes a new one with every change."""
    log: float
    """Up to what size the log may grow by design, in megabytes."""
    splits: float = 1.0
    """How much more than a copy pages may take whose rows have grown: where they do so in place, full pages are split."""


class Verdict(NamedTuple):
    """One question, its answer, and the figures behind it."""

    title: str
    holds: bool
    because: str


@dataclass(frozen=True, slots=True)
class Quarter:
    """The samples of a quarter of the jobs."""

    samples: tuple[Sample, ...]

    def median(self, figure: Callable[[Sample], float]) -> float:
        """Return the middle one of a figure."""
        return statistics.median(map(figure, self.samples))

    @property
    def rate(self) -> float:
        """Jobs per second, from the first of its looks to the last."""
        first, last = self.samples[0], self.samples[-1]
        took = last.seconds - first.seconds
        return (last.done - first.done) / took if took else 0.0

    @property
    def log(self) -> float:
        """The largest log."""
        return max(sample.log for sample in self.samples)


class TooShort(Exception):
    """The drain was over before four quarters could be told apart."""


def quarters(samples: Sequence[Sample], jobs: int) -> list[Quarter]:
    """Split the looks by how many of the jobs were done."""
    found = [
        tuple(sample for sample in samples if min(sample.done, jobs - 1) * _QUARTERS // jobs == n)
        for n in range(_QUARTERS)
    ]
    if any(len(each) < 2 for each in found[1:]):
        raise TooShort(
            f"{len(samples)} looks at {jobs:,} jobs are too few to compare quarters; use more jobs"
        )
    return [Quarter(each) for each in found]


def judge(parts: Sequence[Quarter], room: Room, bounds: Bounds) -> list[Verdict]:
    """Hold the last quarter to the second, and what the records take to what they need."""
    second, last = parts[1], parts[3]
    before, after = (part.median(lambda sample: sample.memory) for part in (second, last))
    most = max(before * _MEMORY_SHARE, before + _MEMORY_ROOM)
    log = max(second.log * _LOG, bounds.log)
    bloat = room.end / room.fresh
    return [
        Verdict("memory is flat", after <= most, f"{before:.1f} MB in the second quarter, {after:.1f} in the last"),
        Verdict(
            "the rate lasts",
            last.rate >= second.rate * _RATE,
            f"{second.rate:,.0f} jobs a second in the second quarter, {last.rate:,.0f} in the last",
        ),
        Verdict("the log is bounded", last.log <= log, f"{last.log:.0f} MB at most in the last quarter, bound {log:.0f}"),
        Verdict(
            "records take what they need",
            bloat <= bounds.versions * _SLACK,
            f"{room.end:.0f} MB at the end, {room.fresh:.0f} in a fresh copy: {bloat:.2f} times, "
            f"bound {bounds.versions * _SLACK:.2f}",
        ),
        Verdict(
            "room is used again",
            room.encore <= room.encore_fresh * bounds.splits * _SLACK,
            f"{room.encore:.1f} MB more after a vacuum and a tenth as many jobs again, "
            f"which take {room.encore_fresh:.1f} in a fresh copy",
        ),
    ]  # fmt: skip
